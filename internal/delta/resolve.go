package delta

import (
	"slices"
	"strings"

	"github.com/tidings-go/tidings/internal/change"
)

// scanLength is the number of changes up to which an earlier change of a key is looked for by going through the batch; above it
// a table is kept.
const scanLength = 16

// resolver works out what a segment changes. It belongs to the goroutine that pops.
type resolver[T any] struct {
	describe        func(T) (version, uid string)
	compare         func(a, b string) (order int, ok bool)
	reportUnchanged bool
	deletes         deletes
	listed          []string // by scope: the newest version of a list in its history; a key that it did not name has no older state

	known   Known[T]
	applied map[string]int // of a long run: the last change of a key that made a delta
	deltas  []change.Change[T]
	others  []change.Change[T] // of a Replace: what comes after the deletes
	stale   uint64
}

// state is what is known of a key at some point of a batch.
type state[T any] struct {
	object       T
	version, uid string
	exists       bool
}

// begin prepares for a batch.
func (r *resolver[T]) begin(known Known[T]) { r.known = known }

// end forgets the batch and returns how many of its changes were dropped.
func (r *resolver[T]) end() uint64 {
	stale := r.stale
	r.known, r.stale = nil, 0
	if len(r.applied) > spareCapacity {
		r.applied = nil
	}
	clear(r.applied)
	r.deltas = emptied(r.deltas)
	r.others = emptied(r.others)
	return stale
}

// emptied returns the slice without elements, its array cleared for reuse, or nil if the array is large.
func emptied[E any](s []E) []E {
	if cap(s) > spareCapacity {
		return nil
	}
	clear(s)
	return s[:0]
}

// run resolves a run of changes, each against the state that its predecessors leave.
func (r *resolver[T]) run(changes []entry[T]) []change.Change[T] {
	long := len(changes) > scanLength
	if long && r.applied == nil {
		r.applied = make(map[string]int)
	}
	for i := range changes {
		c := &changes[i]
		before := r.before(changes, i, long)
		if c.Type == Set {
			c.applied = r.set(&c.Item, before, *r.listedAt(c.scope))
		} else {
			c.applied = r.remove(c, before)
		}
		if long && c.applied {
			r.applied[c.Key] = i
		}
	}
	return r.deltas
}

// before returns the state of the key of change i before that change.
func (r *resolver[T]) before(changes []entry[T], i int, long bool) state[T] {
	key, earlier := changes[i].Key, -1
	if long {
		if j, ok := r.applied[key]; ok {
			earlier = j
		}
	} else {
		for earlier = i - 1; earlier >= 0; earlier-- {
			if changes[earlier].applied && changes[earlier].Key == key {
				break
			}
		}
	}
	if earlier < 0 {
		object, ok := r.known.Get(key)
		if !ok {
			return state[T]{}
		}
		return r.stateOf(object)
	}
	e := &changes[earlier]
	if e.Type != Set {
		return state[T]{}
	}
	return state[T]{e.Object, e.Version, e.UID, true}
}

// stateOf returns the state that a known object is.
func (r *resolver[T]) stateOf(object T) state[T] {
	version, uid := r.describe(object)
	return state[T]{object, version, uid, true}
}

// set resolves a Set of a key in a scope that was listed at a version, and reports whether it made a delta.
func (r *resolver[T]) set(item *Item[T], before state[T], listed string) bool {
	if before.exists {
		if r.outdated(item, before.version, before.uid) {
			r.stale++
			return false
		}
		r.deltas = append(r.deltas, change.Change[T]{Type: change.Updated, Key: item.Key, Old: before.object, New: item.Object})
		return true
	}
	d, remembered := r.deletes.get(item.Key)
	if remembered && r.outdated(item, d.version, d.uid) || r.older(item.Version, listed) {
		r.stale++
		return false
	}
	r.deletes.forget(item.Key)
	r.deltas = append(r.deltas, change.Change[T]{Type: change.Added, Key: item.Key, New: item.Object})
	return true
}

// remove resolves a Delete or a Gone and reports whether it made a delta.
func (r *resolver[T]) remove(c *entry[T], before state[T]) bool {
	if !before.exists {
		r.stale++
		d, _ := r.deletes.get(c.Key)
		r.deletes.remember(c.Key, r.newer(c.Version, d.version), either(c.UID, d.uid))
		return false
	}
	if r.older(c.Version, before.version) {
		r.stale++
		return false
	}
	d := change.Change[T]{Type: change.Deleted, Key: c.Key, Old: before.object, New: c.Object}
	if c.Type == Gone {
		d.New, d.Tombstone = before.object, true
	}
	r.deltas = append(r.deltas, d)
	r.deletes.remember(c.Key, r.newer(c.Version, before.version), either(c.UID, before.uid))
	return true
}

// replace resolves a list against the known objects of its scope. Initial marks one of the initial set.
func (r *resolver[T]) replace(l *list[T], initial bool) []change.Change[T] {
	listed := r.listedAt(l.scope.index)
	if l.newHistory {
		r.deletes.reset(l.scope.prefix)
		*listed = ""
	}
	*listed = r.newer(l.version, *listed)
	items, previous := l.items, ""
	if r.reportUnchanged && r.others == nil && len(items) > spareCapacity {
		r.others = make([]change.Change[T], 0, len(items)) // nearly all of them will be reported
	}
	for key, object := range r.known.Prefix(l.scope.prefix) {
		if key <= previous && previous != "" || !strings.HasPrefix(key, l.scope.prefix) {
			panic("delta: Known.Prefix(" + l.scope.prefix + ") gave key " + key + " after " + previous + "; it must give the keys with that prefix, ascending")
		}
		previous = key
		for len(items) > 0 && items[0].Key < key {
			r.appear(l, &items[0], initial)
			items = items[1:]
		}
		if len(items) > 0 && items[0].Key == key {
			r.meet(l, key, &items[0], r.stateOf(object), initial)
			items = items[1:]
			continue
		}
		r.miss(l, key, r.stateOf(object), initial)
	}
	if r.others == nil && len(items) > spareCapacity {
		r.others = make([]change.Change[T], 0, len(items)) // an initial list: one array instead of doublings
	}
	for i := range items {
		r.appear(l, &items[i], initial)
	}
	if len(r.deltas) == 0 {
		return r.others
	}
	r.deltas = append(r.deltas, r.others...)
	return r.deltas
}

// appear resolves an item whose key is not known.
func (r *resolver[T]) appear(l *list[T], item *Item[T], initial bool) {
	if d, ok := r.deletes.get(item.Key); ok {
		// A list that is not older than the delete knows better than the memory of it.
		order, comparable := r.compare(l.version, d.version)
		if !(comparable && order >= 0) && r.outdated(item, d.version, d.uid) {
			r.stale++
			return
		}
		r.deletes.forget(item.Key)
	}
	r.others = append(r.others, change.Change[T]{Type: change.Added, Key: item.Key, New: item.Object, Initial: initial})
}

// meet resolves an item whose key is known. The delta gets the known key, so that the item's is not kept.
func (r *resolver[T]) meet(l *list[T], key string, item *Item[T], before state[T], initial bool) {
	unchanged := false
	if !l.newHistory {
		unchanged = item.Version != "" && item.Version == before.version && item.UID != "" && item.UID == before.uid
		if unchanged && !r.reportUnchanged {
			return
		}
		if r.older(item.Version, before.version) {
			r.stale++
			return
		}
	}
	r.others = append(r.others, change.Change[T]{Type: change.Updated, Key: key, Old: before.object, New: item.Object, Initial: initial, Unchanged: unchanged})
}

// miss resolves a known key that the list does not name.
func (r *resolver[T]) miss(l *list[T], key string, before state[T], initial bool) {
	_, stays := slices.BinarySearch(l.stays, key)
	if !l.newHistory && (stays || r.older(l.version, before.version)) {
		return
	}
	r.deltas = append(r.deltas, change.Change[T]{Type: change.Deleted, Key: key, Old: before.object, New: before.object, Tombstone: true, Initial: initial})
	if _, comparable := r.compare(l.version, l.version); !comparable && !l.newHistory {
		r.deletes.remember(key, before.version, before.uid) // else the version of the list tells replays
	}
}

// outdated reports whether a Set says nothing new to someone who has seen the version and UID: it is older, or the same state sent
// again. An equal version without a UID on both sides is no proof of that; servers that keep no versions apart (fakes) send such.
func (r *resolver[T]) outdated(item *Item[T], version, uid string) bool {
	order, ok := r.compare(item.Version, version)
	return ok && (order < 0 || order == 0 && item.UID != "" && item.UID == uid)
}

// older reports whether version a is known to be before b.
func (r *resolver[T]) older(a, b string) bool {
	order, ok := r.compare(a, b)
	return ok && order < 0
}

// newer returns the later of two versions, a where they cannot be compared unless it is empty.
func (r *resolver[T]) newer(a, b string) string {
	if a == "" || r.older(a, b) {
		return b
	}
	return a
}

// either returns a, or b if a is empty.
func either(a, b string) string {
	if a == "" {
		return b
	}
	return a
}
