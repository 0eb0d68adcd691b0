package store

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// thing is what the tests store.
type thing struct {
	name string
	tags []string
}

func byTag(t thing) ([]string, error) {
	for _, tag := range t.tags {
		switch tag {
		case "fail":
			return []string{"never"}, errors.New("I do not index this")
		case "panic":
			panic("I cannot bear this")
		}
	}
	return t.tags, nil
}

func byLength(t thing) ([]string, error) { return []string{fmt.Sprint(len(t.name))}, nil }

func newStore(t testing.TB, o Options[thing]) *Store[thing] {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func tagged(t testing.TB, onError func(IndexError)) *Store[thing] {
	return newStore(t, Options[thing]{Indexes: map[string]IndexFunc[thing]{"tag": byTag}, OnIndexError: onError})
}

func (s *Store[T]) set(key string, obj T) { s.Update(func(b *Batch[T]) { b.Set(key, obj) }) }
func (s *Store[T]) remove(key string)     { s.Update(func(b *Batch[T]) { b.Delete(key) }) }

func keysOf[T any](objects iter.Seq2[string, T]) []string {
	keys := []string{}
	for key := range objects {
		keys = append(keys, key)
	}
	return keys
}

func lookup(t testing.TB, s Snapshot[thing], index, value string) []string {
	t.Helper()
	x, err := s.Index(index)
	if err != nil {
		t.Fatal(err)
	}
	return keysOf(x.Lookup(value))
}

func wantKeys(t testing.TB, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

// verify checks every structure of a snapshot against its objects and a model.
func verify(t rapid.TB, s Snapshot[thing], model map[string]thing, indexes map[string]IndexFunc[thing]) {
	t.Helper()
	want := slices.Sorted(maps.Keys(model))
	if got := keysOf(s.All()); !slices.Equal(got, want) {
		t.Fatalf("keys are %q, want %q", got, want)
	}
	if s.Len() != len(model) {
		t.Fatalf("Len is %d, want %d", s.Len(), len(model))
	}
	for key, obj := range model {
		if got, ok := s.Get(key); !ok || got.name != obj.name || !slices.Equal(got.tags, obj.tags) {
			t.Fatalf("Get(%q) is %v, %v, want %v", key, got, ok, obj)
		}
	}
	for name, of := range indexes {
		wanted := map[string][]string{}
		for _, key := range want {
			values, err := call(of, model[key])
			if err != nil {
				continue
			}
			values = slices.Sorted(slices.Values(values)) // a copy: the function's slice is the object's
			for _, value := range slices.Compact(values) {
				wanted[value] = append(wanted[value], key)
			}
		}
		x, err := s.Index(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := slices.Collect(x.Values()), slices.Sorted(maps.Keys(wanted)); !slices.Equal(got, want) {
			t.Fatalf("index %s has the values %q, want %q", name, got, want)
		}
		for value, keys := range wanted {
			if got := keysOf(x.Lookup(value)); !slices.Equal(got, keys) || x.Len(value) != len(keys) {
				t.Fatalf("index %s has %q under %q, want %q", name, got, value, keys)
			}
			for key, obj := range x.Lookup(value) {
				if obj.name != model[key].name {
					t.Fatalf("index %s has an old state of %q", name, key)
				}
			}
		}
	}
}

func TestP03_SnapshotStaysAsItWas(t *testing.T) {
	s := tagged(t, nil)
	s.Update(func(b *Batch[thing]) {
		b.Set("ns/a", thing{"a", []string{"x"}})
		b.Set("ns/b", thing{"b", []string{"x", "y"}})
		b.SetVersion("1")
	})
	held := s.Snapshot()
	s.Update(func(b *Batch[thing]) {
		b.Set("ns/a", thing{"a2", []string{"y"}})
		b.Delete("ns/b")
		b.Set("ns/c", thing{"c", []string{"x"}})
		b.SetVersion("2")
	})
	if err := s.AddIndex("length", byLength); err != nil {
		t.Fatal(err)
	}
	wantKeys(t, "held, all", keysOf(held.All()), "ns/a", "ns/b")
	wantKeys(t, "held, x", lookup(t, held, "tag", "x"), "ns/a", "ns/b")
	wantKeys(t, "held, indexes", held.IndexNames(), "tag")
	wantKeys(t, "now, all", keysOf(s.Snapshot().All()), "ns/a", "ns/c")
	wantKeys(t, "now, y", lookup(t, s.Snapshot(), "tag", "y"), "ns/a")
	wantKeys(t, "now, length 2", lookup(t, s.Snapshot(), "length", "2"), "ns/a")
	if held.Version() != "1" || s.Snapshot().Version() != "2" {
		t.Errorf("versions are %q and %q", held.Version(), s.Snapshot().Version())
	}
}

func TestPrefixIsANamespaceAndNothingBeside(t *testing.T) {
	s := newStore(t, Options[thing]{})
	for _, key := range []string{"a/x", "a-b/x", "a/y", "ab/x", "a", "a0/x", "b/x"} {
		s.set(key, thing{name: key})
	}
	wantKeys(t, "a/", keysOf(s.Snapshot().Prefix("a/")), "a/x", "a/y")
	wantKeys(t, "none", keysOf(s.Snapshot().Prefix("z/")))
	wantKeys(t, "all", keysOf(s.Snapshot().Prefix("")), "a", "a-b/x", "a/x", "a/y", "a0/x", "ab/x", "b/x")
}

func TestP08_ReadersSeeAllOfABatchOrNone(t *testing.T) {
	s := tagged(t, nil)
	const objects, rounds = 50, 300
	write := func(round int) {
		s.Update(func(b *Batch[thing]) {
			for i := range objects {
				b.Set(fmt.Sprint("ns/", i), thing{fmt.Sprint(round), []string{fmt.Sprint(round)}})
			}
			b.SetVersion(fmt.Sprint(round))
		})
	}
	write(0)
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				snapshot := s.Snapshot()
				n := 0
				for key, obj := range snapshot.All() {
					if n++; obj.name != snapshot.Version() {
						t.Errorf("%s is of round %s in state %s", key, obj.name, snapshot.Version())
						return
					}
				}
				if found := len(lookup(t, snapshot, "tag", snapshot.Version())); n != objects || found != objects {
					t.Errorf("a reader saw %d objects and found %d by index, want %d", n, found, objects)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for round := range rounds {
		write(round + 1)
	}
	close(done)
	readers.Wait()
}

func TestP08_PanicInABatchPublishesNothing(t *testing.T) {
	s := tagged(t, nil)
	s.set("a", thing{"a", []string{"x"}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		s.Update(func(b *Batch[thing]) {
			b.Delete("a")
			b.Set("b", thing{name: "b"})
			panic("half way")
		})
	}()
	wantKeys(t, "all", keysOf(s.Snapshot().All()), "a")
	wantKeys(t, "index", lookup(t, s.Snapshot(), "tag", "x"), "a")
	s.set("c", thing{name: "c"})
	wantKeys(t, "all, later", keysOf(s.Snapshot().All()), "a", "c")
}

func TestReplace(t *testing.T) {
	s := tagged(t, nil)
	s.set("old", thing{"old", []string{"x"}})
	s.Replace("7", maps.All(map[string]thing{"new": {"new", []string{"y"}}}))
	wantKeys(t, "all", keysOf(s.Snapshot().All()), "new")
	wantKeys(t, "x", lookup(t, s.Snapshot(), "tag", "x"))
	wantKeys(t, "y", lookup(t, s.Snapshot(), "tag", "y"), "new")
	if s.Snapshot().Version() != "7" {
		t.Errorf("version is %q", s.Snapshot().Version())
	}
}

func TestBatchSeesItsOwnWrites(t *testing.T) {
	s := newStore(t, Options[thing]{})
	s.Update(func(b *Batch[thing]) {
		if _, existed := b.Set("a", thing{name: "1"}); existed {
			t.Error("a new key existed")
		}
		if previous, existed := b.Set("a", thing{name: "2"}); !existed || previous.name != "1" {
			t.Errorf("the second Set returned %v, %v", previous, existed)
		}
		if got, ok := b.Get("a"); !ok || got.name != "2" || b.Len() != 1 {
			t.Errorf("Get returned %v, %v", got, ok)
		}
		if _, ok := s.Get("a"); ok {
			t.Error("a reader sees what was not published")
		}
		if previous, existed := b.Delete("a"); !existed || previous.name != "2" {
			t.Errorf("Delete returned %v, %v", previous, existed)
		}
		if _, existed := b.Delete("a"); existed {
			t.Error("the second Delete found something")
		}
	})
}

func TestP11_FailingIndexFunctionCostsItsEntryOnly(t *testing.T) {
	var errs []IndexError
	s := tagged(t, func(e IndexError) { errs = append(errs, e) })
	s.set("a", thing{"a", []string{"x"}})
	s.set("b", thing{"b", []string{"x"}})
	s.set("a", thing{"a2", []string{"x", "fail"}})
	s.set("b", thing{"b2", []string{"panic"}})
	wantKeys(t, "x", lookup(t, s.Snapshot(), "tag", "x"))
	wantKeys(t, "what a failed call returned", lookup(t, s.Snapshot(), "tag", "never"))
	if got, _ := s.Get("a"); got.name != "a2" {
		t.Errorf("the object is %v", got)
	}
	if len(errs) != 2 || s.IndexErrors() != 2 || errs[0].Index != "tag" || errs[0].Key != "a" {
		t.Fatalf("%d errors were told, %d counted: %v", len(errs), s.IndexErrors(), errs)
	}
	panicked, ok := errors.AsType[*PanicError](errs[1])
	if !ok || panicked.Value != "I cannot bear this" || !strings.Contains(string(panicked.Stack), "byTag") {
		t.Errorf("the panic became %v", errs[1])
	}
	s.set("a", thing{"a3", []string{"x"}})
	wantKeys(t, "x, when it works again", lookup(t, s.Snapshot(), "tag", "x"), "a")
	s.remove("b")
	s.remove("a")
	wantKeys(t, "x, at the end", lookup(t, s.Snapshot(), "tag", "x"))
}

func TestIndexErrorsOfUse(t *testing.T) {
	if _, err := New(Options[thing]{Indexes: map[string]IndexFunc[thing]{"": byTag}}); !errors.Is(err, errNoName) {
		t.Errorf("no name: %v", err)
	}
	if _, err := New(Options[thing]{Indexes: map[string]IndexFunc[thing]{"tag": nil}}); !errors.Is(err, errNilFunc) || !strings.Contains(err.Error(), "tag") {
		t.Errorf("no function: %v", err)
	}
	s := tagged(t, nil)
	if err := s.AddIndex("tag", byTag); !errors.Is(err, ErrIndexExists) || !strings.Contains(err.Error(), "tag") {
		t.Errorf("taken: %v", err)
	}
	if err := s.AddIndex("new", nil); !errors.Is(err, errNilFunc) {
		t.Errorf("nil: %v", err)
	}
	if _, err := s.Snapshot().Index("nosuch"); !errors.Is(err, ErrNoIndex) || !strings.Contains(err.Error(), `"nosuch"`) || !strings.Contains(err.Error(), `["tag"]`) {
		t.Errorf("unknown: %v", err)
	}
}

func TestIndexValuesOfAllShapes(t *testing.T) {
	s := tagged(t, nil)
	s.set("a", thing{"a", []string{"", "x", "x", "x\x00y", "\xff"}})
	s.set("b", thing{"b", []string{"x"}})
	x, err := s.Snapshot().Index("tag")
	if err != nil {
		t.Fatal(err)
	}
	wantKeys(t, "values", slices.Collect(x.Values()), "", "x", "x\x00y", "\xff")
	wantKeys(t, "empty value", keysOf(x.Lookup("")), "a")
	wantKeys(t, "twice the same", keysOf(x.Lookup("x")), "a", "b")
	for range x.Values() {
		break // leaving early is allowed
	}
	for range x.Lookup("x") {
		break
	}
}

// step changes a store and its model in the same way.
func step(s *Store[thing], model map[string]thing, op, key byte, tags []string) {
	k := fmt.Sprintf("%c/%c", 'a'+key%3, 'a'+key/3%5)
	switch op % 4 {
	case 0, 1:
		obj := thing{fmt.Sprint(op, key), tags}
		s.set(k, obj)
		model[k] = obj
	case 2:
		s.remove(k)
		delete(model, k)
	case 3:
		s.Update(func(b *Batch[thing]) {
			for other := range maps.Clone(model) {
				if other > k {
					b.Delete(other)
					delete(model, other)
				}
			}
			b.Set(k, thing{"batch", tags})
			model[k] = thing{"batch", tags}
		})
	}
}

func TestPropertyStoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, err := New(Options[thing]{Indexes: map[string]IndexFunc[thing]{"tag": byTag}})
		if err != nil {
			t.Fatal(err)
		}
		indexes := map[string]IndexFunc[thing]{"tag": byTag}
		model := map[string]thing{}
		type held struct {
			snapshot Snapshot[thing]
			model    map[string]thing
			indexes  map[string]IndexFunc[thing]
		}
		var snapshots []held
		tags := rapid.SliceOfN(rapid.SampledFrom([]string{"x", "y", "", "fail", "panic"}), 0, 3)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			step(s, model, rapid.Byte().Draw(t, "op"), rapid.Byte().Draw(t, "key"), tags.Draw(t, "tags"))
			if len(indexes) == 1 && rapid.IntRange(0, 20).Draw(t, "add index") == 0 {
				if err := s.AddIndex("length", byLength); err != nil {
					t.Fatal(err)
				}
				indexes["length"] = byLength
			}
			if rapid.Bool().Draw(t, "hold") {
				snapshots = append(snapshots, held{s.Snapshot(), maps.Clone(model), maps.Clone(indexes)})
			}
		}
		verify(t, s.Snapshot(), model, indexes)
		for _, h := range snapshots {
			verify(t, h.snapshot, h.model, h.indexes)
		}
	})
}

func FuzzStore(f *testing.F) {
	f.Add([]byte{0, 1, 1, 2, 2, 3, 3, 4})
	f.Fuzz(func(t *testing.T, data []byte) {
		s := tagged(t, nil)
		model := map[string]thing{}
		all := []string{"x", "fail", "", "panic", "y", "x"}
		for ; len(data) >= 3; data = data[3:] {
			from := int(data[2]) % len(all)
			step(s, model, data[0], data[1], all[from:min(len(all), from+int(data[2])/64)])
		}
		verify(t, s.Snapshot(), model, map[string]IndexFunc[thing]{"tag": byTag})
	})
}
