package apisim

import "github.com/tidwall/btree"

// collection holds the objects of a resource in all its versions, with the events of
// its past. The server's lock guards it.
type collection struct {
	// definition is the name of the object that defines the resource, "" if none.
	definition string
	// terminating says that the definition was deleted, and no object may be added.
	terminating bool

	removed bool
	objects btree.Map[string, object] // by namespace/name
	// history holds the events after version floor, the oldest first.
	history []*event
	floor   uint64
	// dropped counts the events that are no longer in history, so that a watch's
	// position stays what it is.
	dropped int
	// compacted is how many of them were forgotten by compaction: a watch whose
	// position is before them is told so.
	compacted int
	changed   chan struct{} // closed at the next event
}

func newCollection() *collection { return &collection{changed: make(chan struct{})} }

// wake tells the watches that something has happened.
func (c *collection) wake() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// record appends an event.
func (c *collection) record(e *event, limit int) {
	c.history = append(c.history, e)
	if excess := len(c.history) - limit; excess > 0 {
		// A part of the limit at a time, so that appending stays cheap.
		excess = min(len(c.history), excess+limit/10)
		c.floor = c.history[excess-1].version
		c.history = append([]*event(nil), c.history[excess:]...)
		c.dropped += excess
	}
	c.wake()
}

// forget drops the events up to a version.
func (c *collection) forget(version uint64) {
	c.dropped += len(c.history)
	c.compacted = c.dropped
	c.history = nil
	c.floor = version
}

func (c *collection) remove(version uint64) {
	c.removed = true
	c.objects.Clear()
	c.dropped++ // no watch has come so far: it ends even if it looks when the resource is back
	c.forget(version)
	c.wake()
}

func (c *collection) restore(version uint64) {
	c.removed = false
	c.forget(version)
}

// at returns the objects as they were at a version, if the history reaches back to
// it: the present ones with the later events undone.
func (c *collection) at(version uint64) (objects *btree.Map[string, object], ok bool) {
	if version < c.floor {
		return nil, false
	}
	objects = c.objects.Copy()
	for i := len(c.history) - 1; i >= 0 && c.history[i].version > version; i-- {
		e := c.history[i]
		if e.before == nil {
			objects.Delete(e.key)
		} else {
			objects.Set(e.key, e.before)
		}
	}
	return objects, true
}
