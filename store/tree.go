package store

import "slices"

// maxEntries is the largest number of entries in a node of a tree. A write of one key
// copies a node per level. Measured with 50,000 keys, for 16, 32, 64 and 128: 1.4, 1.6,
// 2.0 and 3.1 KB allocated by such a write, in 16, 13, 10 and 10 pieces; 177, 168, 165
// and 163 bytes held per key with one index.
const maxEntries = 64

// minEntries is the size below which a node is merged with a neighbour, or takes
// entries from it. A quarter, not a half: keys that come and go at one place would
// otherwise merge and split nodes in turns.
const minEntries = maxEntries / 4

// element is an entry of a tree. It compares itself with a position: negative before it,
// zero at it, positive after it.
type element[P any] interface {
	compare(position P) int
}

// tree is a copy-on-write B-tree, ordered by positions P. Copying the value copies
// the tree, in O(1); giving the copy another owner makes it a version of its own:
// it copies a node before it first changes it, so the versions share the nodes that are equal.
// Nodes of other owners are never written, which is why readers of a published tree
// need no lock.
//
// Entries stand in inner nodes too, so none is held twice, and nodes never share
// arrays: an entry deleted from the last version that had it is garbage.
type tree[P any, E element[P]] struct {
	root  *node[P, E]
	owner uint64 // number of the batch that may change nodes of the same owner
}

type node[P any, E element[P]] struct {
	owner    uint64
	size     int // entries of this node and below
	entries  []E
	children []*node[P, E] // nil in a leaf, else one more than entries
}

func (n *node[P, E]) leaf() bool { return n.children == nil }

// search returns the index of the first entry that is not before the position.
func (n *node[P, E]) search(position P) (index int, found bool) {
	low, high := 0, len(n.entries)
	for low < high {
		middle := int(uint(low+high) / 2)
		switch order := n.entries[middle].compare(position); {
		case order < 0:
			low = middle + 1
		case order > 0:
			high = middle
		default:
			return middle, true
		}
	}
	return low, false
}

func (t tree[P, E]) len() int {
	if t.root == nil {
		return 0
	}
	return t.root.size
}

func (t tree[P, E]) find(position P) (entry E, found bool) {
	for n := t.root; n != nil; {
		i, found := n.search(position)
		if found {
			return n.entries[i], true
		}
		if n.leaf() {
			break
		}
		n = n.children[i]
	}
	return entry, false
}

// rank counts the entries before the position.
func (t tree[P, E]) rank(position P) int {
	rank := 0
	for n := t.root; n != nil; {
		i, found := n.search(position)
		rank += i
		if n.leaf() {
			break
		}
		for _, child := range n.children[:i] {
			rank += child.size
		}
		if found {
			rank += n.children[i].size
			break
		}
		n = n.children[i]
	}
	return rank
}

// all yields every entry in order, until yield returns false.
func (t tree[P, E]) all(yield func(E) bool) {
	if t.root != nil {
		t.root.all(yield)
	}
}

func (n *node[P, E]) all(yield func(E) bool) bool {
	if n.leaf() {
		for _, entry := range n.entries {
			if !yield(entry) {
				return false
			}
		}
		return true
	}
	for i, entry := range n.entries {
		if !n.children[i].all(yield) || !yield(entry) {
			return false
		}
	}
	return n.children[len(n.entries)].all(yield)
}

// from yields the entries that are not before the position, in order, until yield
// returns false.
func (t tree[P, E]) from(position P, yield func(E) bool) {
	if t.root != nil {
		t.root.from(position, yield)
	}
}

func (n *node[P, E]) from(position P, yield func(E) bool) bool {
	i, found := n.search(position)
	if !n.leaf() && !found && !n.children[i].from(position, yield) {
		return false
	}
	for ; i < len(n.entries); i++ {
		if !yield(n.entries[i]) {
			return false
		}
		if !n.leaf() && !n.children[i+1].all(yield) {
			return false
		}
	}
	return true
}

// own returns a node that the tree may change: n, or a copy of it.
func (t *tree[P, E]) own(n *node[P, E]) *node[P, E] {
	if n.owner == t.owner {
		return n
	}
	return &node[P, E]{
		owner: t.owner, size: n.size,
		entries: slices.Clone(n.entries), children: slices.Clone(n.children),
	}
}

func (t *tree[P, E]) ownChild(n *node[P, E], i int) *node[P, E] {
	child := t.own(n.children[i])
	n.children[i] = child
	return child
}

// newNode makes a node, which takes over the arrays of entries and children.
func (t *tree[P, E]) newNode(entries []E, children []*node[P, E]) *node[P, E] {
	n := &node[P, E]{owner: t.owner, size: len(entries), entries: entries, children: children}
	for _, child := range children {
		n.size += child.size
	}
	return n
}

func (t *tree[P, E]) set(position P, entry E) (previous E, replaced bool) {
	if t.root == nil {
		t.root = t.newNode([]E{entry}, nil)
		return previous, false
	}
	t.root = t.own(t.root)
	previous, replaced = t.setIn(t.root, position, entry)
	if len(t.root.entries) > maxEntries {
		left, middle, right := t.split(t.root, true)
		t.root = t.newNode([]E{middle}, []*node[P, E]{left, right})
	}
	return previous, replaced
}

// setIn sets below n, which is owned. It may leave n with one entry too many.
func (t *tree[P, E]) setIn(n *node[P, E], position P, entry E) (previous E, replaced bool) {
	i, found := n.search(position)
	if found {
		previous, n.entries[i] = n.entries[i], entry
		return previous, true
	}
	if n.leaf() {
		n.entries = insert(n.entries, i, entry)
		n.size++
		return previous, false
	}
	child := t.ownChild(n, i)
	previous, replaced = t.setIn(child, position, entry)
	if replaced {
		return previous, true
	}
	n.size++
	if len(child.entries) > maxEntries {
		left, middle, right := t.split(child, i == len(n.children)-1)
		n.children[i] = left
		n.entries = insert(n.entries, i, middle)
		n.children = insert(n.children, i+1, right)
	}
	return previous, false
}

// split makes two nodes of one. The last node of a level is split near its end: keys
// that arrive in order then leave full nodes behind them.
func (t *tree[P, E]) split(n *node[P, E], last bool) (left *node[P, E], mid E, right *node[P, E]) {
	at := len(n.entries) / 2
	if last {
		at = len(n.entries) - 2
	}
	var low, high []*node[P, E]
	if !n.leaf() {
		low, high = slices.Clone(n.children[:at+1]), slices.Clone(n.children[at+1:])
	}
	left = t.newNode(slices.Clone(n.entries[:at]), low)
	right = t.newNode(slices.Clone(n.entries[at+1:]), high)
	return left, n.entries[at], right
}

// delete removes the entry at the position. A tree without one stays as it is.
func (t *tree[P, E]) delete(position P) (entry E, found bool) {
	if entry, found = t.find(position); !found {
		return entry, false
	}
	t.root = t.own(t.root)
	t.deleteIn(t.root, position)
	if len(t.root.entries) == 0 {
		if t.root.leaf() {
			t.root = nil
		} else {
			t.root = t.root.children[0]
		}
	}
	return entry, true
}

// deleteIn removes the entry at the position, which is there, from n, which is owned,
// or from below it.
func (t *tree[P, E]) deleteIn(n *node[P, E], position P) {
	i, found := n.search(position)
	n.size--
	switch {
	case n.leaf():
		n.entries = slices.Delete(n.entries, i, i+1)
		return
	case found:
		n.entries[i] = t.popLast(t.ownChild(n, i))
	default:
		t.deleteIn(t.ownChild(n, i), position)
	}
	t.refill(n, i)
}

// popLast removes the last entry of n, which is owned, or from below it.
func (t *tree[P, E]) popLast(n *node[P, E]) (entry E) {
	n.size--
	last := len(n.entries) - 1
	if n.leaf() {
		entry = n.entries[last]
		n.entries = slices.Delete(n.entries, last, last+1)
		return entry
	}
	entry = t.popLast(t.ownChild(n, last+1))
	t.refill(n, last+1)
	return entry
}

// refill merges child i of n, which is owned, with a neighbour if it has become
// small, or gives both the same share where they are too many for one node.
func (t *tree[P, E]) refill(n *node[P, E], i int) {
	if len(n.children[i].entries) >= minEntries || len(n.children) == 1 {
		return
	}
	i = max(i-1, 0)
	left, right := n.children[i], n.children[i+1]
	merged := t.newNode(
		slices.Concat(left.entries, n.entries[i:i+1], right.entries),
		slices.Concat(left.children, right.children),
	)
	if len(merged.entries) <= maxEntries {
		n.children[i] = merged
		n.entries = slices.Delete(n.entries, i, i+1)
		n.children = slices.Delete(n.children, i+1, i+2)
		return
	}
	n.children[i], n.entries[i], n.children[i+1] = t.split(merged, false)
}

// insert puts x at index i. It grows in small steps, since most nodes that a
// batch touches are changed little and then stay: append would double them.
func insert[X any](list []X, i int, x X) []X {
	if len(list) < cap(list) {
		return slices.Insert(list, i, x)
	}
	const step = 8
	grown := make([]X, len(list)+1, (len(list)+step)/step*step)
	copy(grown, list[:i])
	grown[i] = x
	copy(grown[i+1:], list[i:])
	return grown
}

// at returns the entry of a rank, which is less than len.
func (t tree[P, E]) at(rank int) E {
	n := t.root
	for !n.leaf() {
		i := 0
		for ; rank > n.children[i].size; i++ {
			rank -= n.children[i].size + 1
		}
		if rank == n.children[i].size {
			return n.entries[i]
		}
		n = n.children[i]
	}
	return n.entries[rank]
}
