package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestP03_SnapshotHasTheIndexesOfItsState(t *testing.T) {
	s := newStore(t, Options[*thing]{})
	set(s, "a", &thing{1, nil})
	held := s.Snapshot()
	if err := s.AddIndex("parity", byParity); err != nil {
		t.Fatal(err)
	}
	if err := s.AddIndex("tag", byTag); err != nil {
		t.Fatal(err)
	}
	if _, ok := held.Index("parity"); ok || len(held.Indexes()) != 0 {
		t.Errorf("an index that was added later: it is there, of %v", held.Indexes())
	}
	if got := s.Snapshot().Indexes(); !slices.Equal(got, []any{"parity", "tag"}) {
		t.Errorf("the indexes are %v, want those that were added, in this order", got)
	}
	if got := lookup(t, s.Snapshot(), "parity", "odd"); !slices.Equal(got, []string{"a"}) {
		t.Errorf("the new index has %q", got)
	}
}

func TestP08_PanicInABatchPublishesNothing(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	set(s, "a", &thing{1, []string{"x"}})
	before := s.Snapshot()
	for _, write := range map[string]func(){
		"Update": func() {
			s.Update(func(b *Batch[*thing]) {
				b.Set("a", &thing{2, []string{"y"}})
				b.Set("b", &thing{3, []string{"x"}})
				b.Delete("a")
				b.SetVersion("lost")
				panic("stop")
			})
		},
		"Replace": func() {
			s.Replace("lost", func(yield func(string, *thing) bool) {
				yield("c", &thing{4, nil})
				panic("stop")
			})
		},
	} {
		func() {
			defer func() {
				if recover() != "stop" {
					t.Error("the panic did not go on")
				}
			}()
			write()
		}()
		if s.Snapshot() != before {
			t.Fatal("a state was published")
		}
	}
	set(s, "b", &thing{5, []string{"x"}})
	if got := lookup(t, s.Snapshot(), "tag", "x"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("the index has %q", got)
	}
	verifyStore(t, s)
}

func TestP11_FailingIndexFunctionCostsItsEntryOnly(t *testing.T) {
	var failed []IndexError
	var s *Store[*thing]
	s = newStore(t, Options[*thing]{
		Indexes: map[any]IndexFunc[*thing]{"tag": byTag, "parity": byParity},
		OnIndexError: func(err IndexError) {
			failed = append(failed, err)
			set(s, "reported", &thing{0, nil}) // the store may be used
		},
	})
	set(s, "a", &thing{1, []string{"x"}})
	set(s, "b", &thing{1, []string{"x"}})
	if s.IndexErrors() != 0 {
		t.Fatalf("%d errors", s.IndexErrors())
	}
	for i, tag := range []string{"!", "!!"} {
		set(s, "a", &thing{i, []string{"x", tag}})
		if got := lookup(t, s.Snapshot(), "tag", "x"); !slices.Equal(got, []string{"b"}) {
			t.Errorf("under the failing index are %q, want b alone", got)
		}
		if got := lookup(t, s.Snapshot(), "parity", []string{"even", "odd"}[i]); !slices.Contains(got, "a") {
			t.Errorf("the other index has %q, without a", got)
		}
		if object, _ := s.Get("a"); object.number != i {
			t.Errorf("Get has %v", object)
		}
		verifyStore(t, s)
	}
	set(s, "a", &thing{5, []string{"x"}})
	if got := lookup(t, s.Snapshot(), "tag", "x"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("after a good state there are %q", got)
	}
	if len(failed) != 2 || s.IndexErrors() != 2 {
		t.Fatalf("%d errors were reported, %d counted", len(failed), s.IndexErrors())
	}
	if err := failed[0]; err.Index != "tag" || err.Key != "a" || !errors.Is(err, errRefused) {
		t.Errorf("reported: %v", err)
	}
	panicked, ok := errors.AsType[*PanicError](failed[1])
	if !ok || panicked.Value != errPanic || !errors.Is(failed[1], errPanic) || !strings.Contains(string(panicked.Stack), "byTag") {
		t.Errorf("reported: %#v", failed[1])
	}
}

func TestP11_FailuresOfABatchThatPanicsAreNotReported(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	func() {
		defer func() { recover() }()
		s.Update(func(b *Batch[*thing]) {
			b.Set("a", &thing{1, []string{"!"}})
			panic("stop")
		})
	}()
	if s.IndexErrors() != 0 {
		t.Errorf("%d errors of objects that were never in the store", s.IndexErrors())
	}
	set(s, "a", &thing{1, []string{"!"}}) // without OnIndexError, failures are counted
	if s.IndexErrors() != 1 {
		t.Errorf("%d failures, want 1", s.IndexErrors())
	}
}

func TestP11_AddIndexToAFilledStore(t *testing.T) {
	failed := 0
	s := newStore(t, Options[*thing]{
		Indexes:      map[any]IndexFunc[*thing]{"parity": byParity},
		OnIndexError: func(IndexError) { failed++ },
	})
	for i := range 200 {
		tags := []string{"x"}
		if i%50 == 0 {
			tags = []string{"!!"}
		}
		set(s, fmt.Sprintf("%03d", i), &thing{i, tags})
	}
	if err := s.AddIndex("tag", byTag); err != nil {
		t.Fatal(err)
	}
	verifyStore(t, s)
	if got := lookup(t, s.Snapshot(), "tag", "x"); len(got) != 196 || failed != 4 {
		t.Errorf("%d entries, %d failures, want 196 and 4", len(got), failed)
	}
	if got := lookup(t, s.Snapshot(), "parity", "odd"); len(got) != 100 {
		t.Errorf("the index of before has %d odd ones, want 100", len(got))
	}
}

func TestPrefixIsOneNamespace(t *testing.T) {
	s := newStore(t, Options[*thing]{})
	keys := []string{"", "a", "a-b/x", "a.b/x", "a/", "a/x", "a/y", "a0/x", "a:/x", "b/x", "\xff\xff"}
	s.Update(func(b *Batch[*thing]) {
		for i, key := range keys {
			b.Set(key, &thing{i, nil})
		}
	})
	for prefix, want := range map[string][]string{
		"":         keys,
		"a/":       {"a/", "a/x", "a/y"},
		"a":        keys[1:9],
		"a-b/":     {"a-b/x"},
		"\xff":     {"\xff\xff"},
		"\xff\xff": {"\xff\xff"},
		"c":        nil,
	} {
		if got := keysOf(s.Snapshot().Prefix(prefix)); !slices.Equal(got, want) {
			t.Errorf("Prefix(%q) has %q, want %q", prefix, got, want)
		}
	}
}

// The order of an index function's values is of no account: functions range over maps.
func TestValuesInAnotherOrderTouchNoIndex(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	set(s, "a", &thing{1, []string{"x", "y", "z"}})
	before := s.Snapshot().state.indexes[0].entries.root
	set(s, "a", &thing{2, []string{"z", "x", "y", "x"}})
	if s.Snapshot().state.indexes[0].entries.root != before {
		t.Error("the index was written")
	}
}

func TestErrorsOfUse(t *testing.T) {
	if _, err := New(Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"": byTag}}); !errors.Is(err, ErrIndexName) {
		t.Errorf("no name: %v", err)
	}
	if _, err := New(Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": nil}}); !errors.Is(err, ErrIndexFunc) || !strings.Contains(err.Error(), `"tag"`) {
		t.Errorf("no function: %v", err)
	}
	type id struct{ value any }
	s := newStore(t, Options[*thing]{})
	if _, ok := s.Snapshot().Index("tag"); ok {
		t.Error("no index at all: it is there")
	}
	for _, added := range []struct {
		id       any
		function IndexFunc[*thing]
		want     error
	}{
		{"tag", byTag, nil}, {"tag", byParity, ErrIndexExists},
		{id{"tag"}, byTag, nil}, {id{"tag"}, byTag, ErrIndexExists}, {id{7}, byParity, nil},
		{"", byTag, ErrIndexName}, {nil, byTag, ErrIndexName}, {id{[]int{1}}, byTag, ErrIndexName},
		{"other", nil, ErrIndexFunc},
	} {
		if err := s.AddIndex(added.id, added.function); !errors.Is(err, added.want) {
			t.Errorf("AddIndex(%v): %v, want %v", added.id, err, added.want)
		}
	}
	if _, ok := s.Snapshot().Index("node"); ok {
		t.Error("another index is there")
	}
}

func TestBatchIsForItsFunctionOnly(t *testing.T) {
	s := newStore(t, Options[*thing]{})
	var kept *Batch[*thing]
	s.Update(func(b *Batch[*thing]) { kept = b })
	for name, use := range map[string]func(){
		"Set": func() { kept.Set("a", nil) }, "Delete": func() { kept.Delete("a") }, "Get": func() { kept.Get("a") },
		"Len": func() { kept.Len() }, "SetVersion": func() { kept.SetVersion("1") },
	} {
		func() {
			defer func() {
				if value := recover(); value == nil || !strings.Contains(fmt.Sprint(value), "Update") {
					t.Errorf("%s: %v", name, value)
				}
			}()
			use()
		}()
	}
}

func TestZeroSnapshotIsEmpty(t *testing.T) {
	var zero Snapshot[*thing]
	if _, ok := zero.Get("a"); ok || zero.Len() != 0 || zero.Version() != "" || keysOf(zero.All()) != nil {
		t.Error("the zero snapshot is not empty")
	}
	if zero.PrefixLen("") != 0 || zero.PrefixLen("a") != 0 {
		t.Error("the zero snapshot has objects")
	}
	if _, _, ok := zero.Cursor().Next(); ok {
		t.Error("the cursor of the zero snapshot has an object")
	}
	if _, ok := zero.Index("tag"); ok {
		t.Error("Index: it is there")
	}
	if ids := zero.Indexes(); len(ids) != 0 {
		t.Errorf("the zero snapshot has the indexes %v", ids)
	}
}

func TestUpdateWithoutAChangePublishesNothing(t *testing.T) {
	s := newStore(t, Options[*thing]{})
	set(s, "a", &thing{1, nil})
	before := s.Snapshot()
	s.Update(func(b *Batch[*thing]) { b.Delete("absent"); b.SetVersion("") })
	if s.Snapshot() != before {
		t.Error("an equal state was published")
	}
}

func TestIterationsStopAndRepeat(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"parity": byParity}})
	for i := range 1000 {
		set(s, fmt.Sprintf("%04d", i), &thing{i, nil})
	}
	x, ok := s.Snapshot().Index("parity")
	if !ok {
		t.Fatal("no such index")
	}
	for name, objects := range map[string]func(func(string, *thing) bool){
		"All": s.Snapshot().All(), "Prefix": s.Snapshot().Prefix("0"), "Lookup": x.Lookup("odd"),
		"LookupAny": x.LookupAny([]string{"odd", "even"}),
	} {
		for stop := range 300 {
			n := 0
			for range objects {
				if n++; n > stop {
					break
				}
			}
			if n != stop+1 {
				t.Fatalf("%s: visited %d, want %d", name, n, stop+1)
			}
		}
	}
	for value := range x.Values() {
		if value != "even" {
			t.Errorf("the first value is %q", value)
		}
		break
	}
}

// TestP03_EqualObjectsTakeThePlace of the present ones in new states alone, without calls of index
// functions.
func TestP03_EqualObjectsTakeThePlace(t *testing.T) {
	type object struct{ value string }
	calls := 0
	s, err := New(Options[*object]{Indexes: map[any]IndexFunc[*object]{"value": func(o *object) ([]string, error) {
		calls++
		return []string{o.value}, nil
	}}})
	if err != nil {
		t.Fatal(err)
	}
	first, equal := &object{"x"}, &object{"x"}
	s.Update(func(b *Batch[*object]) { b.Set("a", first) })
	before := s.Snapshot()
	s.Update(func(b *Batch[*object]) {
		b.SetEqual("a", equal)
		b.SetEqual("absent", equal)
	})
	after := s.Snapshot()
	for name, test := range map[string]struct {
		snapshot Snapshot[*object]
		want     *object
	}{"before": {before, first}, "after": {after, equal}} {
		index, _ := test.snapshot.Index("value")
		for key, obj := range index.Lookup("x") {
			if key != "a" || obj != test.want {
				t.Errorf("%s: the index has %p for %s, want %p", name, obj, key, test.want)
			}
		}
		if obj, _ := test.snapshot.Get("a"); obj != test.want || test.snapshot.Len() != 1 || index.Len("x") != 1 {
			t.Errorf("%s: a is %p of %d, want %p", name, obj, test.snapshot.Len(), test.want)
		}
	}
	if calls != 1 {
		t.Errorf("the index function was called %d times, want 1", calls)
	}
	s.Update(func(b *Batch[*object]) { b.Set("a", &object{"y"}) })
	if index, _ := s.Snapshot().Index("value"); index.Len("x") != 0 || index.Len("y") != 1 {
		t.Error("a later change of the values is not in the index")
	}
}
