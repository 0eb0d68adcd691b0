package store

// maxDepth is more levels than any tree has: nodes that are not the last of their level
// have at least minEntries entries, so twelve levels are 10^14 of them.
const maxDepth = 12

// Cursor visits the objects of a [Snapshot] in ascending order of their keys, one per call
// of Next. It holds the snapshot's objects until it has reached the end. It is for one
// goroutine at a time and owns no other: it may be dropped anywhere.
type Cursor[T any] struct {
	objects tree[string, *item[T]]
	at      cursor[string, *item[T]]
	begun   bool
}

// Next returns the next object and its key; ok is false at the end, and from then on.
func (c *Cursor[T]) Next() (key string, object T, ok bool) {
	var r *item[T]
	switch {
	case !c.begun:
		c.begun = true
		r, ok = c.at.seek(c.objects, "")
	case c.at.depth > 0:
		r, ok = c.at.step()
	}
	if !ok {
		*c = Cursor[T]{begun: true}
		return "", object, false
	}
	return r.key, r.object, true
}

// cursor stands at an entry of a tree and can go to the next one, which callbacks
// cannot where several trees, or parts of one, are walked side by side. It is for trees
// that are published: they do not change.
type cursor[P any, E element[P]] struct {
	depth int
	path  [maxDepth]struct {
		node *node[P, E]
		next int // the entry that is visited next in node
	}
}

// seek goes to the first entry that is not before the position.
func (c *cursor[P, E]) seek(t tree[P, E], position P) (entry E, ok bool) {
	c.depth = 0
	for n := t.root; n != nil; {
		i, found := n.search(position)
		c.push(n, i)
		if found || n.leaf() {
			break
		}
		n = n.children[i]
	}
	return c.here()
}

func (c *cursor[P, E]) push(n *node[P, E], next int) {
	c.path[c.depth].node, c.path[c.depth].next = n, next
	c.depth++
}

// here returns the entry where the cursor stands, having left the nodes that are done.
func (c *cursor[P, E]) here() (entry E, ok bool) {
	for c.depth > 0 {
		if at := &c.path[c.depth-1]; at.next < len(at.node.entries) {
			return at.node.entries[at.next], true
		}
		c.depth--
	}
	return entry, false
}

// step goes to the entry after the one where the cursor stands; there is one.
func (c *cursor[P, E]) step() (entry E, ok bool) {
	at := &c.path[c.depth-1]
	at.next++
	if !at.node.leaf() {
		for n := at.node.children[at.next]; ; n = n.children[0] {
			c.push(n, 0)
			if n.leaf() {
				break
			}
		}
	}
	return c.here()
}
