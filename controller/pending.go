package controller

import (
	"container/heap"
	"iter"
	"time"
)

// objectID names an object of a follower.
type objectID struct {
	informer uint32
	key      string
}

// pending are the writes of a key that a cache may not show, or whose events have not come.
type pending struct {
	key     string
	first   *awaited // the writes, in the order in which they were recorded
	last    *awaited
	due     time.Duration // the time of the next check without an event
	since   time.Duration // the time at which it was parked
	problem error         // the error of the last question to the server
	place   int32         // in the heap
	open    int32         // the number of writes that do not show
	parked  bool
	asking  bool // the server is being asked
	unshown bool // a write was settled by asking
}

// writes yields the writes, which may be removed meanwhile.
func (p *pending) writes() iter.Seq[*awaited] {
	return func(yield func(*awaited) bool) {
		for w, next := p.first, (*awaited)(nil); w != nil; w = next {
			if next = w.nextOfKey; !yield(w) {
				return
			}
		}
	}
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

// ledger has the writes, by key and by object, and the keys, by the time at which they are due.
type ledger struct {
	keys    map[string]*pending
	due     byDue
	objects map[objectID]*awaited // the first write of each
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

// insert appends a write to those of its key and of its object.
func (l *ledger) insert(w *awaited) {
	p := w.of
	if w.prevOfKey = p.last; p.last == nil {
		p.first = w
	} else {
		p.last.nextOfKey = w
	}
	p.last = w
	last := l.objects[w.id()]
	if last == nil {
		l.objects[w.id()] = w
		return
	}
	for last.nextOfObject != nil {
		last = last.nextOfObject
	}
	last.nextOfObject = w
}

// remove takes a write out.
func (l *ledger) remove(w *awaited) {
	before, next := &w.of.first, &w.of.last
	if w.prevOfKey != nil {
		before = &w.prevOfKey.nextOfKey
	}
	if w.nextOfKey != nil {
		next = &w.nextOfKey.prevOfKey
	}
	*before, *next = w.nextOfKey, w.prevOfKey
	id := w.id()
	switch first := l.objects[id]; {
	case first != w:
		for first.nextOfObject != w {
			first = first.nextOfObject
		}
		first.nextOfObject = w.nextOfObject
	case w.nextOfObject == nil:
		delete(l.objects, id)
	default:
		l.objects[id] = w.nextOfObject
	}
}

// earlier yields the writes of the same key and object that are recorded, which may be removed meanwhile.
func (l *ledger) earlier(w *awaited) iter.Seq[*awaited] {
	return func(yield func(*awaited) bool) {
		for other, next := l.objects[w.id()], (*awaited)(nil); other != nil; other = next {
			if next = other.nextOfObject; other.of == w.of && !yield(other) {
				return
			}
		}
	}
}

// follows reports whether an earlier write of the same key and object does not show.
func (l *ledger) follows(w *awaited) bool {
	for other := l.objects[w.id()]; other != w; other = other.nextOfObject {
		if other.of == w.of && !other.shown {
			return true
		}
	}
	return false
}
