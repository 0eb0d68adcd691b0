package store

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// verifyTree checks the shape of a tree: order, sizes, balance, and how full nodes are.
func verifyTree[P any, E element[P]](t rapid.TB, what string, tr tree[P, E], positionOf func(E) P) {
	t.Helper()
	if tr.root == nil {
		return
	}
	depth := -1
	var walk func(n *node[P, E], level int)
	walk = func(n *node[P, E], level int) {
		if len(n.entries) == 0 || len(n.entries) > maxEntries {
			t.Fatalf("%s: a node has %d entries", what, len(n.entries))
		}
		size := len(n.entries)
		if n.leaf() {
			if depth >= 0 && depth != level {
				t.Fatalf("%s: leaves at levels %d and %d", what, depth, level)
			}
			depth = level
		} else if len(n.children) != len(n.entries)+1 {
			t.Fatalf("%s: a node has %d entries and %d children", what, len(n.entries), len(n.children))
		}
		for _, child := range n.children {
			walk(child, level+1)
			size += child.size
		}
		if n.size != size {
			t.Fatalf("%s: a node says it has %d entries below it, and has %d", what, n.size, size)
		}
	}
	walk(tr.root, 0)
	rank := 0
	var last *E
	for e := range tr.all {
		p := positionOf(e)
		if last != nil && (*last).compare(p) >= 0 {
			t.Fatalf("%s: entry %d is not after the one before it", what, rank)
		}
		if got := tr.rank(p); got != rank {
			t.Fatalf("%s: entry %d has the rank %d", what, rank, got)
		}
		if _, found := tr.find(p); !found {
			t.Fatalf("%s: entry %d is not found", what, rank)
		}
		last, rank = &e, rank+1
	}
	if rank != tr.len() {
		t.Fatalf("%s: %d entries, len says %d", what, rank, tr.len())
	}
}

// verifyStore checks everything that must hold of the whole store when no writer runs:
// the trees, that the hash table holds exactly the items of the tree, and that each
// object stands in the indexes where its anchor says, and nothing else does.
func verifyStore[T any](t rapid.TB, s *Store[T]) {
	t.Helper()
	state := s.published.Load()
	verifyTree(t, "objects", state.objects, func(r *item[T]) string { return r.key })
	entries := 0
	for r := range state.objects.all {
		if r.number > state.number {
			t.Fatalf("%q was set by batch %d, the state is of batch %d", r.key, r.number, state.number)
		}
		if state.byKey.find(state.byKey.hash(r.key), r.key) != r {
			t.Fatalf("the table does not have the item of %q", r.key)
		}
		if r.anchor == nil {
			continue
		}
		if len(r.anchor.places) == 0 {
			t.Fatalf("%q is in no index and has an anchor", r.key)
		}
		if r.anchor.newest.Load() != r {
			t.Fatalf("the anchor of %q does not refer to its item", r.key)
		}
		if !slices.IsSortedFunc(r.anchor.places, comparePlaces) {
			t.Fatalf("the places of %q are not in order: %v", r.key, r.anchor.places)
		}
		for _, p := range r.anchor.places {
			e, found := state.indexes[p.index].entries.find(position{value: p.value, key: r.key})
			if !found || e.anchor != r.anchor {
				t.Fatalf("%q does not stand under %q in index %v", r.key, p.value, state.indexes[p.index].id)
			}
			entries++
		}
	}
	for _, x := range state.indexes {
		verifyTree(t, fmt.Sprint("index ", x.id), x.entries, func(e entry[T]) position {
			return position{value: e.value, key: e.anchor.newest.Load().key}
		})
		entries -= x.entries.len()
	}
	if entries != 0 {
		t.Fatalf("the indexes have %d entries more than the objects have places", -entries)
	}
	used := 0
	for i := range state.byKey.slots {
		if state.byKey.slots[i].Load() != nil {
			used++
		}
	}
	if used != state.objects.len() || used != state.byKey.used {
		t.Fatalf("the table has %d items and says %d, there are %d objects", used, state.byKey.used, state.objects.len())
	}
}

// verifySnapshot checks that a snapshot agrees with the model, in every way of asking.
func verifySnapshot(t rapid.TB, s Snapshot[*thing], model map[string]*thing, indexes map[any]IndexFunc[*thing]) {
	t.Helper()
	want := slices.Sorted(maps.Keys(model))
	if got := keysOf(s.All()); !slices.Equal(got, want) {
		t.Fatalf("keys are %q, want %q", got, want)
	}
	if s.Len() != len(model) {
		t.Fatalf("Len is %d, want %d", s.Len(), len(model))
	}
	c := s.Cursor()
	for key, object := range s.All() {
		if object != model[key] {
			t.Fatalf("All has %v for %q, want %v", object, key, model[key])
		}
		if at, same, ok := c.Next(); at != key || same != object || !ok {
			t.Fatalf("the cursor is at %q with %v, %v, want %q with %v", at, same, ok, key, object)
		}
	}
	for range 2 {
		if at, _, ok := c.Next(); ok {
			t.Fatalf("the cursor is at %q after the end", at)
		}
	}
	for _, key := range append(want, "", "absent", "a/absent") {
		object, ok := s.Get(key)
		if wanted, exists := model[key]; ok != exists || object != wanted {
			t.Fatalf("Get(%q) is %v, %v, want %v, %v", key, object, ok, wanted, exists)
		}
	}
	for _, prefix := range testPrefixes {
		if got, want := s.PrefixLen(prefix), len(keysOf(s.Prefix(prefix))); got != want {
			t.Fatalf("PrefixLen(%q) is %d, want %d", prefix, got, want)
		}
	}
	for name, function := range indexes {
		x, ok := s.Index(name)
		if !ok {
			t.Fatal("no such index")
		}
		verifyIndex(t, fmt.Sprint(name), x, model, function)
	}
}

// testPrefixes are those of some of the keys that the model uses, and of none of them.
var testPrefixes = []string{"", "a", "a/", "ns-1/", "ns-1/1", "ns-", "zz", "\xff", "\xff\xff"}

func verifyIndex(t rapid.TB, name string, x Index[*thing], model map[string]*thing, function IndexFunc[*thing]) {
	t.Helper()
	verifyValues(t, name, x, model, function)
	for _, prefix := range testPrefixes {
		within := maps.Clone(model)
		maps.DeleteFunc(within, func(key string, _ *thing) bool { return !strings.HasPrefix(key, prefix) })
		part := x.Within(prefix)
		verifyValues(t, name+" within "+prefix, part, within, function)
		verifyValues(t, name+" within within "+prefix, part.Within(""), within, function)
		if prefix != "" {
			verifyValues(t, name+" within no key", part.Within("-"), nil, function)
		}
		verifyAny(t, name, part, within, function)
	}
}

// verifyAny checks lookups of several values.
func verifyAny(t rapid.TB, name string, x Index[*thing], model map[string]*thing, function IndexFunc[*thing]) {
	t.Helper()
	for _, values := range [][]string{nil, {"x"}, {"x", "none"}, {"y", "x", "", "z"}, {"odd", "x", "even", "x"}} {
		var want []string
		for _, key := range slices.Sorted(maps.Keys(model)) {
			has, err := function.call(model[key])
			if err == nil && slices.ContainsFunc(has, func(value string) bool { return slices.Contains(values, value) }) {
				want = append(want, key)
			}
		}
		if got := keysOf(x.LookupAny(values)); !slices.Equal(got, want) {
			t.Fatalf("index %q within %q has %q under any of %q, want %q", name, x.prefix, got, values, want)
		}
		for key, object := range x.LookupAny(values) {
			if object != model[key] {
				t.Fatalf("index %q has %v for %q, want %v", name, object, key, model[key])
			}
		}
	}
}

func verifyValues(t rapid.TB, name string, x Index[*thing], model map[string]*thing, function IndexFunc[*thing]) {
	t.Helper()
	want := map[string][]string{}
	for _, key := range slices.Sorted(maps.Keys(model)) {
		values, err := function.call(model[key])
		if err != nil {
			continue
		}
		for _, value := range values {
			if keys := want[value]; len(keys) == 0 || keys[len(keys)-1] != key {
				want[value] = append(keys, key)
			}
		}
	}
	if got := slices.Collect(x.Values()); !slices.Equal(got, slices.Sorted(maps.Keys(want))) {
		t.Fatalf("index %q has the values %q, want %q", name, got, slices.Sorted(maps.Keys(want)))
	}
	for value, keys := range want {
		if got := keysOf(x.Lookup(value)); !slices.Equal(got, keys) || x.Len(value) != len(keys) {
			t.Fatalf("index %q has %d under %q, %q, want %q", name, x.Len(value), value, got, keys)
		}
		for key, object := range x.Lookup(value) {
			if object != model[key] {
				t.Fatalf("index %q has %v for %q, want %v", name, object, key, model[key])
			}
		}
	}
}

func keysOf[T any](objects iter.Seq2[string, T]) []string {
	var keys []string
	for key := range objects {
		keys = append(keys, key)
	}
	return keys
}

// thing is an object that the tests store.
type thing struct {
	number int
	tags   []string
}

var (
	errRefused = errorString("refused")
	errPanic   = errorString("panicked")
)

type errorString string

func (e errorString) Error() string { return string(e) }

// byTag fails for objects tagged "!" and panics for those tagged "!!".
func byTag(t *thing) ([]string, error) {
	if slices.Contains(t.tags, "!") {
		return []string{"not to be seen"}, errRefused
	}
	if slices.Contains(t.tags, "!!") {
		panic(errPanic)
	}
	return t.tags, nil
}

// byParity has one value for each object.
func byParity(t *thing) ([]string, error) { return []string{[]string{"even", "odd"}[t.number&1]}, nil }

func newStore(t testing.TB, o Options[*thing]) *Store[*thing] {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func set[T any](s *Store[T], key string, object T) {
	s.Update(func(b *Batch[T]) { b.Set(key, object) })
}

func remove[T any](s *Store[T], key string) { s.Update(func(b *Batch[T]) { b.Delete(key) }) }

func lookup[T any](t testing.TB, s Snapshot[T], index, value string) []string {
	t.Helper()
	x, ok := s.Index(index)
	if !ok {
		t.Fatal("no such index")
	}
	return keysOf(x.Lookup(value))
}
