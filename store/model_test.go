package store

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// modelled is a store beside a plain map with the same writes, and the snapshots
// taken on the way beside copies of the map.
type modelled struct {
	store   *Store[*thing]
	objects map[string]*thing
	indexes map[any]IndexFunc[*thing]
	version string
	count   int // makes each object another one
	failed  int
	held    []heldSnapshot
}

type heldSnapshot struct {
	snapshot Snapshot[*thing]
	objects  map[string]*thing
	indexes  map[any]IndexFunc[*thing]
	version  string
}

func newModelled(t rapid.TB) *modelled {
	t.Helper()
	m := &modelled{objects: map[string]*thing{}, indexes: map[any]IndexFunc[*thing]{"tag": byTag}}
	var err error
	m.store, err = New(Options[*thing]{Indexes: m.indexes, OnIndexError: func(e IndexError) { m.failed++ }})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// operation is one write in a batch.
type operation struct {
	delete bool
	key    string
	tags   []string
}

// apply runs operations as one batch and checks its answers on the way. With
// abort it panics at the end, and nothing must have happened.
func (m *modelled) apply(t rapid.TB, operations []operation, version string, abort bool) {
	t.Helper()
	objects := maps.Clone(m.objects)
	defer func() {
		if value := recover(); value != nil && value != "abort" {
			panic(value)
		}
		if !abort {
			m.objects, m.version = objects, version
		}
	}()
	m.store.Update(func(b *Batch[*thing]) {
		for _, o := range operations {
			wanted, expected := objects[o.key]
			var got *thing
			var existed bool
			if o.delete {
				delete(objects, o.key)
				got, existed = b.Delete(o.key)
			} else {
				m.count++
				objects[o.key] = &thing{number: m.count, tags: o.tags}
				got, existed = b.Set(o.key, objects[o.key])
			}
			if got != wanted || existed != expected {
				t.Fatalf("%v found %v, %v, want %v, %v", o, got, existed, wanted, expected)
			}
			if now, ok := b.Get(o.key); now != objects[o.key] || ok == o.delete || b.Len() != len(objects) {
				t.Fatalf("after %v the batch has %v, %v and %d objects, want %d", o, now, ok, b.Len(), len(objects))
			}
		}
		b.SetVersion(version)
		if abort {
			panic("abort")
		}
	})
}

func (m *modelled) replace(operations []operation, version string) {
	m.objects, m.version = map[string]*thing{}, version
	m.store.Replace(version, func(yield func(string, *thing) bool) {
		for _, o := range operations {
			m.count++
			object := &thing{number: m.count, tags: o.tags}
			m.objects[o.key] = object
			if !yield(o.key, object) {
				return
			}
		}
	})
}

func (m *modelled) addIndex(t rapid.TB, name string, function IndexFunc[*thing]) {
	t.Helper()
	_, exists := m.indexes[name]
	if err := m.store.AddIndex(name, function); (err != nil) != exists {
		t.Fatalf("AddIndex(%q): %v", name, err)
	}
	if !exists {
		m.indexes = maps.Clone(m.indexes)
		m.indexes[name] = function
	}
}

func (m *modelled) hold() {
	m.held = append(m.held, heldSnapshot{m.store.Snapshot(), maps.Clone(m.objects), m.indexes, m.version})
}

// verify checks the store as a whole and that all held snapshots are unchanged.
func (m *modelled) verify(t rapid.TB) {
	t.Helper()
	verifyStore(t, m.store)
	for _, h := range append(slices.Clip(m.held), heldSnapshot{m.store.Snapshot(), m.objects, m.indexes, m.version}) {
		verifySnapshot(t, h.snapshot, h.objects, h.indexes)
		if got := h.snapshot.Version(); got != h.version {
			t.Fatalf("the version is %q, want %q", got, h.version)
		}
	}
	if uint64(m.failed) != m.store.IndexErrors() {
		t.Fatalf("%d index errors were reported and %d counted", m.failed, m.store.IndexErrors())
	}
}

var operationGen = rapid.Custom(func(t *rapid.T) operation {
	tag := rapid.SampledFrom([]string{"", "x", "y", "z", "x", "odd", "!", "!!"})
	return operation{
		delete: rapid.IntRange(0, 3).Draw(t, "delete") == 0,
		key:    rapid.SampledFrom(testKeys()).Draw(t, "key"),
		tags:   rapid.SliceOfN(tag, 0, 4).Draw(t, "tags"),
	}
})

// testKeys are enough for trees of two levels, with neighbours that a prefix must
// tell apart.
func testKeys() []string {
	keys := []string{"", "a", "a/", "a-b/x", "a/x", "a0/x", "a/x/y", "\xff", "a/\x00"}
	for i := range 300 {
		keys = append(keys, fmt.Sprintf("ns-%d/%d", i%3, i))
	}
	return keys
}

func modelProperty(t *rapid.T) {
	m := newModelled(t)
	operations := rapid.SliceOfN(operationGen, 0, 250)
	version := rapid.StringN(0, 2, 2)
	t.Repeat(map[string]func(*rapid.T){
		"update":  func(t *rapid.T) { m.apply(t, operations.Draw(t, "ops"), version.Draw(t, "v"), false) },
		"one":     func(t *rapid.T) { m.apply(t, []operation{operationGen.Draw(t, "op")}, m.version, false) },
		"abort":   func(t *rapid.T) { m.apply(t, operations.Draw(t, "ops"), "aborted", true) },
		"replace": func(t *rapid.T) { m.replace(operations.Draw(t, "ops"), version.Draw(t, "v")) },
		"index": func(t *rapid.T) {
			m.addIndex(t, rapid.SampledFrom([]string{"tag", "parity"}).Draw(t, "name"), byParity)
		},
		"hold": func(t *rapid.T) {
			if len(m.held) < 5 {
				m.hold()
			}
		},
		"": func(t *rapid.T) { m.verify(t) },
	})
}

func TestP03_P06_P08_StoreIsItsModel(t *testing.T) { rapid.Check(t, modelProperty) }

func FuzzStore(f *testing.F) { f.Fuzz(rapid.MakeFuzz(modelProperty)) }
