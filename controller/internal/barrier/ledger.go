package barrier

import (
	"container/heap"
	"iter"
	"time"

	"github.com/tidings-go/tidings/controller/internal/caches"
)

// pending are the writes of a key that a cache may not show, or whose events have not come.
type pending struct {
	key string
	writes
	due     time.Duration // the time of the next check without an event
	since   time.Duration // the time at which it was parked
	problem error         // the error of the last question to the server
	place   int32         // in the heap
	open    int32         // the number of writes that are not settled
	parked  bool
	asking  bool // the server is being asked
	unshown bool // a write was settled by asking
}

// writes is a list of the writes of a key, or of an object, in the order in which they were
// recorded.
type writes struct {
	first, last *write
	n           int
}

// Each write is in two lists.
const (
	ofKey    = iota // the writes of a key
	ofObject        // the writes of an object, by all keys
)

// all yields the writes, which may be removed meanwhile. of is ofKey or ofObject.
func (l *writes) all(of int) iter.Seq[*write] {
	return func(yield func(*write) bool) {
		if l == nil {
			return
		}
		for w, next := l.first, (*write)(nil); w != nil; w = next {
			if next = w.links[of].next; !yield(w) {
				return
			}
		}
	}
}

func (l *writes) add(w *write, of int) {
	if w.links[of].prev = l.last; l.last == nil {
		l.first = w
	} else {
		l.last.links[of].next = w
	}
	l.last = w
	l.n++
}

func (l *writes) remove(w *write, of int) {
	at := w.links[of]
	before, next := &l.first, &l.last
	if at.prev != nil {
		before = &at.prev.links[of].next
	}
	if at.next != nil {
		next = &at.next.links[of].prev
	}
	*before, *next = at.next, at.prev
	l.n--
}

// byDue is a heap of keys.
type byDue []*pending

func (h byDue) Len() int           { return len(h) }
func (h byDue) Less(i, j int) bool { return h[i].due < h[j].due }

func (h byDue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i), int32(j)
}

// Push appends a key.
func (h *byDue) Push(p any) {
	p.(*pending).place = int32(len(*h))
	*h = append(*h, p.(*pending))
}

// Pop removes the last key.
func (h *byDue) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}

// ledger has the writes, by key and by object, and the keys, by the time at which they are due. To
// add and to remove a write takes a constant time.
type ledger struct {
	keys    map[string]*pending
	due     byDue
	objects map[caches.ObjectID]*writes
}

// obtain returns the entry of a key. It makes one that is due at a time if there is none.
func (l *ledger) obtain(key string, due time.Duration) *pending {
	p := l.keys[key]
	if p == nil {
		p = &pending{key: key, due: due}
		l.keys[key] = p
		heap.Push(&l.due, p)
	}
	return p
}

// schedule changes when a key is due.
func (l *ledger) schedule(p *pending, due time.Duration) {
	p.due = due
	heap.Fix(&l.due, int(p.place))
}

// drop forgets a key without writes that is not parked.
func (l *ledger) drop(p *pending) {
	if p.first == nil && !p.parked && l.keys[p.key] == p {
		delete(l.keys, p.key)
		heap.Remove(&l.due, int(p.place))
	}
}

// insert appends a write to the writes of its key and of its object.
func (l *ledger) insert(w *write) {
	w.of.add(w, ofKey)
	others := l.objects[w.id()]
	if others == nil {
		others = &writes{}
		l.objects[w.id()] = others
	}
	others.add(w, ofObject)
}

// remove takes a write out.
func (l *ledger) remove(w *write) {
	w.of.remove(w, ofKey)
	others := l.objects[w.id()]
	if others.remove(w, ofObject); others.n == 0 {
		delete(l.objects, w.id())
	}
}

// earlier yields the writes of the key and the object of a write that were recorded before it, and
// may be removed meanwhile. It looks at the other writes of the key or of the object, whichever are
// fewer.
func (l *ledger) earlier(w *write) iter.Seq[*write] {
	return func(yield func(*write) bool) {
		list, of := &w.of.writes, ofKey
		if others := l.objects[w.id()]; others == nil || others.n < list.n {
			list, of = others, ofObject
		}
		for other := range list.all(of) {
			isOf := other.of == w.of && other.id() == w.id()
			if other == w || isOf && !yield(other) {
				return
			}
		}
	}
}

// follows reports whether an earlier write of the same key and object is not settled.
func (l *ledger) follows(w *write) bool {
	for other := range l.earlier(w) {
		if !other.settled {
			return true
		}
	}
	return false
}
