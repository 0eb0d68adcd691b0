package apisim

import (
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
)

// collection holds the objects of a resource, in all its versions, and its past events. The
// server's lock guards it.
type collection struct {
	// definition is the name of the definition of the resource, "" for a resource without a
	// definition.
	definition string
	// terminating is set when the definition is deleted: no object may be added.
	terminating bool

	objects objectTree
	// history holds the events after version floor, the oldest first.
	history []*event
	floor   uint64
	// dropped counts the events that left history. The position of a watch is an index in
	// history plus dropped.
	dropped int
	// compacted counts the dropped events up to the last Compact: a watch before them gets an
	// error.
	compacted int
	changed   chan struct{} // closed at the next event
}

func newCollection() *collection { return &collection{changed: make(chan struct{})} }

// wake wakes the watches, which then read the collection.
func (c *collection) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// add appends an event. It drops a tenth of the limit of old events at a time, so that appending
// stays cheap.
func (c *collection) add(e *event, limit int) {
	c.history = append(c.history, e)
	if excess := len(c.history) - limit; excess > 0 {
		excess = min(len(c.history), excess+limit/10)
		c.floor = c.history[excess-1].version
		c.history = append([]*event(nil), c.history[excess:]...)
		c.dropped += excess
	}
	c.wake()
}

func (c *collection) compact(version uint64) {
	c.dropped += len(c.history)
	c.compacted = c.dropped
	c.history = nil
	c.floor = version
}

// remove drops all objects without events, and ends every watch.
func (c *collection) remove(version uint64) {
	c.objects.Clear()
	c.dropped += len(c.history) + 1
	c.history, c.floor = nil, version
	c.wake()
}

// after returns the index in history of the first event after a version.
func (c *collection) after(version uint64) int {
	return sort.Search(len(c.history), func(i int) bool { return c.history[i].version > version })
}

// at returns the objects as of a version, if the history reaches back to it. It undoes the later
// events on a copy of the present objects.
func (c *collection) at(version uint64) (objects *objectTree, ok bool) {
	if version < c.floor {
		return nil, false
	}
	objects = c.objects.Copy()
	for i := len(c.history) - 1; i >= 0 && c.history[i].version > version; i-- {
		if e := c.history[i]; e.before == nil {
			objects.Delete(e.key)
		} else {
			objects.Set(e.key, e.before)
		}
	}
	return objects, true
}

// event is one write: the state before, nil for a create, and the state after, nil for a delete.
// Only its encoded frames change.
type event struct {
	version       uint64
	key           string
	before, after object

	mu     sync.Mutex // guards frames
	frames map[frameKey][]byte
}

// frameKey is the key of an encoded frame of an event.
type frameKey struct {
	form    form
	version string // of the API
	event   watch.EventType
}

// visible returns the type of the event and the object to send to a watch with a
// selection. An object that begins or ceases to match is added or deleted. The type is
// "" if the watch does not see the event.
func (e *event) visible(s objectSelection) (watch.EventType, object) {
	matched := e.before != nil && s.matches(e.before)
	matches := e.after != nil && s.matches(e.after)
	switch {
	case matches && matched:
		return watch.Modified, e.after
	case matches:
		return watch.Added, e.after
	case matched:
		return watch.Deleted, e.before
	default:
		return "", nil
	}
}

// frame returns the type of the event, "" if the watch does not see it, and its frame.
// A frame is encoded once for all watches of one form.
func (e *event) frame(r *resource, f form, s objectSelection) (watch.EventType, []byte, error) {
	kind, state := e.visible(s)
	if kind == "" {
		return "", nil, nil
	}
	key := frameKey{f, r.Version, kind}
	e.mu.Lock()
	defer e.mu.Unlock()
	if frame, ok := e.frames[key]; ok {
		return kind, frame, nil
	}
	if kind == watch.Deleted {
		state = atVersion(state, e.version)
	}
	frame, err := encodeEvent(r, f, kind, state)
	if err != nil {
		return "", nil, err
	}
	if e.frames == nil {
		e.frames = make(map[frameKey][]byte, 1)
	}
	e.frames[key] = frame
	return kind, frame, nil
}
