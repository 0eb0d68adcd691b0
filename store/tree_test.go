package store

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// number is an element at its own position.
type number int

func (n number) compare(position int) int { return cmp.Compare(int(n), position) }

// levels counts the levels of a tree.
func levels(tr tree[int, number]) int {
	n := 0
	for at := tr.root; at != nil; n++ {
		if at.leaf() {
			return n + 1
		}
		at = at.children[0]
	}
	return n
}

// orders are ways of going through n numbers.
func orders(n int) map[string][]int {
	ascending := make([]int, n)
	for i := range ascending {
		ascending[i] = i
	}
	descending, middle := slices.Clone(ascending), slices.Clone(ascending)
	slices.Reverse(descending)
	slices.SortFunc(middle, func(a, b int) int { return cmp.Compare(max(a-n/2, n/2-a), max(b-n/2, n/2-b)) })
	return map[string][]int{
		"ascending": ascending, "descending": descending, "from the middle": middle,
		"shuffled": rand.New(rand.NewPCG(1, 2)).Perm(n),
	}
}

// TestTreesOfThreeLevels fills and empties trees that have inner nodes below the root, in
// several orders. A copy of a tree stays as it is.
func TestTreesOfThreeLevels(t *testing.T) {
	const n = 6000
	self := func(e number) int { return int(e) }
	for _, filling := range []string{"ascending", "shuffled"} {
		var full tree[int, number]
		for _, i := range orders(n)[filling] {
			full.set(i, number(i))
		}
		if levels(full) < 3 {
			t.Fatalf("filled %s, the tree has %d levels", filling, levels(full))
		}
		for emptying, order := range orders(n) {
			what := "filled " + filling + ", emptied " + emptying
			tr := full
			tr.owner = full.owner + 1
			for at, i := range order {
				if e, found := tr.delete(i); !found || int(e) != i {
					t.Fatalf("%s: deleted %d, %v, want %d", what, e, found, i)
				}
				if left := n - at - 1; left%(n/4) == 0 || left == 100 {
					verifyTree(t, fmt.Sprintf("%s, %d left", what, left), tr, self)
				}
			}
			if tr.root != nil {
				t.Errorf("%s: the tree has a root", what)
			}
		}
		verifyTree(t, "filled "+filling, full, self)
		if full.len() != n {
			t.Errorf("filled %s: the copy of before has %d entries", filling, full.len())
		}
	}
}

// TestKeysInOrderFillNodes counts the nodes of a tree that is filled in ascending order.
func TestKeysInOrderFillNodes(t *testing.T) {
	const n = 10_000
	var tr tree[int, number]
	for i := range n {
		tr.set(i, number(i))
	}
	nodes := 0
	var walk func(at *node[int, number])
	walk = func(at *node[int, number]) {
		nodes++
		for _, child := range at.children {
			walk(child)
		}
	}
	walk(tr.root)
	if most := n / (maxEntries - 4); nodes > most {
		t.Errorf("%d nodes, want at most %d", nodes, most)
	}
}

// TestWalksOverThreeLevels stops walks at each entry, and moves a cursor to each.
func TestWalksOverThreeLevels(t *testing.T) {
	const n = 6000
	var tr tree[int, number]
	for i := range n {
		tr.set(i, number(i))
	}
	for stop := range n {
		for name, walk := range map[string]func(func(number) bool){
			"all": tr.all, "from": func(yield func(number) bool) { tr.from(0, yield) },
		} {
			visited := 0
			walk(func(number) bool { visited++; return visited <= stop%100 })
			if visited != stop%100+1 {
				t.Fatalf("%s: visited %d, want %d", name, visited, stop%100+1)
			}
		}
		last := -1
		tr.from(stop, func(e number) bool { last = int(e); return false })
		if last != stop {
			t.Fatalf("from %d: began at %d", stop, last)
		}
	}
	var c cursor[int, number]
	at, ok := c.seek(tr, 0)
	for i := range n {
		if !ok || int(at) != i {
			t.Fatalf("the cursor is at %d, %v, want %d", at, ok, i)
		}
		at, ok = c.step()
	}
	if ok {
		t.Errorf("the cursor is at %d after the end", at)
	}
}

// TestTableOfEqualHashes puts keys of one hash into a hash table and takes them out again.
func TestTableOfEqualHashes(t *testing.T) {
	keys := []string{"a", "b", "c", "d"}
	table := newHashTable[int](maphash.MakeSeed(), len(keys))
	for i, key := range keys {
		table.put(&item[int]{key: key, hash: 7, object: i})
	}
	left := map[int]bool{0: true, 1: true, 2: true, 3: true}
	for _, gone := range []int{2, 0, 3, 1} {
		table.remove(7, keys[gone])
		delete(left, gone)
		for i, key := range keys {
			if r := table.find(7, key); (r != nil) != left[i] || r != nil && r.object != i {
				t.Errorf("with the keys %v, %q has %v", left, key, r)
			}
		}
	}
	if table.used != 0 {
		t.Errorf("the empty table says that it has %d items", table.used)
	}
}

// TestTableShrinks deletes nearly all objects, one at a time.
func TestTableShrinks(t *testing.T) {
	const n = 10_000
	s := newStore(t, Options[*thing]{})
	s.Update(func(b *Batch[*thing]) {
		for i := range n {
			b.Set(fmt.Sprint(i), &thing{i, nil})
		}
	})
	table := s.published.Load().byKey
	if set(s, "0", &thing{0, nil}); s.published.Load().byKey != table {
		t.Fatal("a table that has room was copied")
	}
	for i := range n - 1 {
		remove(s, fmt.Sprint(i))
	}
	table = s.published.Load().byKey
	if slots := len(table.slots); slots != minSlots {
		t.Errorf("the table has %d slots for one object, want %d", slots, minSlots)
	}
	set(s, fmt.Sprint(n-1), &thing{0, nil})
	if remove(s, fmt.Sprint(n-1)); s.published.Load().byKey != table {
		t.Error("the smallest table was copied")
	}
	verifyStore(t, s)
}

// TestLookupOfManyValues merges more runs than a heap has on two levels.
func TestLookupOfManyValues(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	random := rand.New(rand.NewPCG(1, 2))
	var values, want []string
	for i := range 50 {
		values = append(values, fmt.Sprint("v", i))
	}
	s.Update(func(b *Batch[*thing]) {
		for i := range 1000 {
			var tags []string
			for range random.IntN(4) {
				tags = append(tags, values[random.IntN(len(values))])
			}
			key := fmt.Sprintf("%04d", i)
			if b.Set(key, &thing{i, tags}); len(tags) > 0 {
				want = append(want, key)
			}
		}
	})
	x, ok := s.Snapshot().Index("tag")
	if !ok {
		t.Fatal("no such index")
	}
	if got := keysOf(x.LookupAny(values)); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestEqualValuesAreOneString gives two objects the same value, in two strings.
func TestEqualValuesAreOneString(t *testing.T) {
	s := newStore(t, Options[*thing]{Indexes: map[any]IndexFunc[*thing]{"tag": byTag}})
	large := string(make([]byte, 1<<10)) + "value"
	set(s, "before", &thing{0, []string{"smaller"}})
	set(s, "after", &thing{0, []string{"worth more"}})
	set(s, "a", &thing{1, []string{large[1<<10:]}})
	set(s, "b", &thing{2, []string{string([]byte("value"))}})
	held := func(key string) *byte {
		r, _ := s.published.Load().find(key)
		return unsafe.StringData(r.anchor.places[0].value)
	}
	if held("a") != held("b") || held("a") == unsafe.StringData(large[1<<10:]) {
		t.Error("the index holds a value twice, or what it is a part of")
	}
}
