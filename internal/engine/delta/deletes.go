package delta

import "strings"

// deletion is the memory of a deleted key.
type deletion struct {
	version string // not before the last state of the key
	uid     string
	place   int // in deletes.ring
}

// deletes remembers the most recently deleted keys, so that a replayed older Set does not
// resurrect one of them. It is a map of keys with a ring in order of age. A key is in it at most
// once, and only while it does not exist. It belongs to the goroutine that pops.
type deletes struct {
	bound int // none are remembered if it is not positive
	byKey map[string]deletion
	ring  []string // keys in order of deletion from next on; "" may be a free place
	next  int      // the place to be used next
}

// get returns the memory of a deleted key.
func (d *deletes) get(key string) (deletion, bool) {
	if len(d.byKey) == 0 {
		return deletion{}, false
	}
	e, ok := d.byKey[key]
	return e, ok
}

// remember makes key the most recent deletion, and forgets the oldest one if there is no room.
// A deletion without a version cannot be compared with later events and is not kept.
func (d *deletes) remember(key, version, uid string) {
	d.forget(key)
	if d.bound <= 0 || version == "" {
		return
	}
	if d.byKey == nil {
		d.byKey = make(map[string]deletion)
	}
	if len(d.ring) < d.bound {
		d.ring = append(d.ring, key)
		d.byKey[key] = deletion{version, uid, len(d.ring) - 1}
		return
	}
	oldest := d.ring[d.next]
	if e, ok := d.get(oldest); ok && e.place == d.next { // "" may be a key, too
		delete(d.byKey, oldest)
	}
	d.ring[d.next] = key
	d.byKey[key] = deletion{version, uid, d.next}
	d.next = (d.next + 1) % d.bound
}

// forget removes a key, because it exists again.
func (d *deletes) forget(key string) {
	if e, ok := d.get(key); ok {
		d.ring[e.place] = ""
		delete(d.byKey, key)
	}
}

// reset forgets all keys with a prefix.
func (d *deletes) reset(prefix string) {
	for key := range d.byKey {
		if strings.HasPrefix(key, prefix) {
			d.forget(key)
		}
	}
}
