package delta

import (
	"cmp"
	"strings"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// scanLength is the number of events up to which an earlier event of a key is found by scanning
// the run; a longer run has a table.
const scanLength = 16

// resolver works out the changes of a segment. It belongs to the goroutine that pops.
type resolver[T any] struct {
	describe        func(T) (version, uid string)
	compare         func(a, b string) (order int, ok bool)
	reportUnchanged bool
	unknownDeletes  func() bool
	deletes         deletes
	unusable        unusable

	known   Known[T]
	applied map[string]int // of a long run: the last event of a key that led to a change
	changes []change.Change[T]
	upserts []change.Change[T] // of a Replace: what follows the deletes
	stale   uint64
}

// state is the state of a key at some point of a batch.
type state[T any] struct {
	object       T
	version, uid string
	exists       bool
}

// end forgets the batch and returns the number of its events and items that were dropped.
func (r *resolver[T]) end() uint64 {
	stale := r.stale
	r.known, r.stale = nil, 0
	if len(r.applied) > spareCapacity {
		r.applied = nil
	}
	clear(r.applied)
	r.changes = emptied(r.changes)
	r.upserts = emptied(r.upserts)
	r.unusable.begun = emptied(r.unusable.begun)
	return stale
}

// run resolves a run of events, each against the state that the events before it leave.
func (r *resolver[T]) run(s *segment[T]) []change.Change[T] {
	long := len(s.events) > scanLength
	if long && r.applied == nil {
		r.applied = make(map[string]int)
	}
	i := 0
	for _, span := range s.spans {
		for ; i < span.end; i++ {
			e := &s.events[i]
			before := r.before(s.events, i, long)
			switch e.Type {
			case Set:
				e.applied = r.set(s, e, before, span.partition.listed)
			case Merged:
				e.applied = r.set(s, e, before, "")
			default:
				e.applied = r.delete(e, before)
			}
			if long && e.applied {
				r.applied[e.Key] = i
			}
		}
	}
	return r.changes
}

// before returns the state of the key of event i before that event.
func (r *resolver[T]) before(events []entry[T], i int, long bool) state[T] {
	key, earlier := events[i].Key, -1
	if long {
		if j, ok := r.applied[key]; ok {
			earlier = j
		}
	} else {
		for earlier = i - 1; earlier >= 0; earlier-- {
			if events[earlier].applied && events[earlier].Key == key {
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
	e := &events[earlier]
	if e.Type == Delete || e.Type == Gone || e.unusable > 0 {
		return state[T]{}
	}
	return state[T]{e.Object, e.Version, e.UID, true}
}

// stateOf returns the state of a known object.
func (r *resolver[T]) stateOf(object T) state[T] {
	version, uid := r.describe(object)
	return state[T]{object, version, uid, true}
}

// set resolves a Set of a key whose partition was listed at a version, and reports whether it
// led to a change.
func (r *resolver[T]) set(s *segment[T], e *entry[T], before state[T], listed string) bool {
	item := &e.Item
	d, remembered := r.deletes.get(item.Key)
	switch {
	case before.exists && r.outdated(item, before.version, before.uid),
		!before.exists && remembered && r.outdated(item, d.version, d.uid),
		!before.exists && r.older(item.Version, listed), r.notedAfter(item.Key, item.Version):
		r.stale++
		return false
	case e.unusable > 0:
		return r.stays(Unusable{item.Key, item.Version, item.UID, s.errs[e.unusable-1]}, before)
	}
	r.unusable.forget(item.Key)
	c := change.Change[T]{Type: change.Added, Key: item.Key, New: item.Object}
	if before.exists {
		c.Type, c.Old = change.Updated, before.object
	} else {
		r.deletes.forget(item.Key)
	}
	r.changes = append(r.changes, c)
	return true
}

// delete resolves a Delete or a Gone and reports whether it led to a change.
func (r *resolver[T]) delete(e *entry[T], before state[T]) bool {
	if r.notedAfter(e.Key, e.Version) {
		r.stale++
		return false
	}
	noted := r.unusable.forget(e.Key)
	if !before.exists && e.Type == Delete && r.unknownDeletes() {
		before = state[T]{object: e.Object, exists: true}
	}
	if !before.exists {
		if !noted {
			r.stale++
		}
		d, _ := r.deletes.get(e.Key)
		r.deletes.remember(e.Key, r.newer(e.Version, d.version), cmp.Or(e.UID, d.uid))
		return false
	}
	if r.older(e.Version, before.version) {
		r.stale++
		return false
	}
	// The handlers know the incarnation before. They would take the final state of another one,
	// whose add was missed, for a state of it.
	if e.Type == Gone || differ(e.UID, before.uid) {
		r.tombstone(e.Key, before.object, false)
	} else {
		r.changes = append(r.changes, change.Change[T]{
			Type: change.Deleted, Key: e.Key, Old: before.object, New: e.Object,
		})
	}
	r.deletes.remember(e.Key, r.newer(e.Version, before.version), cmp.Or(e.UID, before.uid))
	return true
}

// replace resolves a list against the known objects of its partition. Initial marks one of the
// initial set.
func (r *resolver[T]) replace(l *list[T], initial bool) []change.Change[T] {
	p := l.partition
	if l.newHistory {
		r.deletes.reset(p.prefix)
		p.listed = ""
	}
	p.listed = r.newer(l.version, p.listed)
	r.noteListed(l)
	items, previous := l.items, ""
	if r.reportUnchanged {
		r.reserveUpserts(len(items)) // nearly all of them will be reported
	}
	for key, object := range r.known.Prefix(p.prefix) {
		if key <= previous && previous != "" || !strings.HasPrefix(key, p.prefix) {
			panic("delta: Known.Prefix(" + p.prefix + ") gave key " + key + " after " + previous +
				"; it must give the keys with that prefix, ascending")
		}
		previous = key
		for len(items) > 0 && items[0].Key < key {
			r.addListed(l, &items[0], initial)
			items = items[1:]
		}
		if len(items) > 0 && items[0].Key == key {
			r.updateListed(l, key, &items[0], r.stateOf(object), initial)
			items = items[1:]
			continue
		}
		r.deleteUnlisted(l, key, r.stateOf(object), initial)
	}
	r.reserveUpserts(len(items)) // of an initial list: one array instead of doublings
	for i := range items {
		r.addListed(l, &items[i], initial)
	}
	if len(r.changes) == 0 {
		return r.upserts
	}
	r.changes = append(r.changes, r.upserts...)
	return r.changes
}

// reserveUpserts makes the array of upserts at once if it is missing and will be large.
func (r *resolver[T]) reserveUpserts(n int) {
	if r.upserts == nil && n > spareCapacity {
		r.upserts = make([]change.Change[T], 0, n)
	}
}

// addListed resolves an item whose key is not known.
func (r *resolver[T]) addListed(l *list[T], item *Item[T], initial bool) {
	if d, ok := r.deletes.get(item.Key); ok {
		// A list that is not older than the delete knows better than the memory of it.
		order, comparable := r.compare(l.version, d.version)
		if !(comparable && order >= 0) && r.outdated(item, d.version, d.uid) {
			r.stale++
			return
		}
		r.deletes.forget(item.Key)
	}
	r.upserts = append(r.upserts, change.Change[T]{
		Type: change.Added, Key: item.Key, New: item.Object, Initial: initial,
	})
}

// updateListed resolves an item whose key is known. The change gets the known key, so that the
// item's is not kept.
func (r *resolver[T]) updateListed(
	l *list[T], key string, item *Item[T], before state[T], initial bool,
) {
	unchanged := false
	if !l.newHistory {
		unchanged = item.Version != "" && item.Version == before.version &&
			item.UID != "" && item.UID == before.uid
		if unchanged && !r.reportUnchanged {
			return
		}
		if r.older(item.Version, before.version) {
			r.stale++
			return
		}
	}
	r.upserts = append(r.upserts, change.Change[T]{
		Type: change.Updated, Key: key, Old: before.object, New: item.Object,
		Initial: initial, Unchanged: unchanged,
	})
}

// deleteUnlisted resolves a known key that the list does not name.
func (r *resolver[T]) deleteUnlisted(l *list[T], key string, before state[T], initial bool) {
	i, stays := l.stay(key)
	if !l.newHistory && (r.older(l.version, before.version) || stays && r.keeps(&l.stays[i], before)) {
		return
	}
	r.tombstone(key, before.object, initial)
	if l.moved != nil && l.moved(key, before.uid) {
		r.changes[len(r.changes)-1].Moved = true
		return
	}
	if _, comparable := r.compare(l.version, l.version); !comparable && !l.newHistory {
		// Otherwise the version of the list tells replays.
		r.deletes.remember(key, before.version, before.uid)
	}
}

// remove resolves the removal of partitions: everything known of them is deleted.
func (r *resolver[T]) remove(prefixes []string) []change.Change[T] {
	for _, prefix := range prefixes {
		for key, object := range r.known.Prefix(prefix) {
			r.tombstone(key, object, false)
		}
		r.deletes.reset(prefix)
		r.unusable.forgetEach(func(u *Unusable) bool { return strings.HasPrefix(u.Key, prefix) })
	}
	return r.changes
}

// leave resolves the removal of objects that have moved. Deletes of them are not remembered: they
// may come back in the same state.
func (r *resolver[T]) leave(leaves func(key, uid string) bool) []change.Change[T] {
	for key, object := range r.known.Prefix("") {
		if _, uid := r.describe(object); leaves(key, uid) {
			r.tombstone(key, object, false)
			r.changes[len(r.changes)-1].Moved = true
		}
	}
	r.unusable.forgetEach(func(u *Unusable) bool { return leaves(u.Key, u.UID) })
	return r.changes
}

// tombstone adds the tombstone of a known object.
func (r *resolver[T]) tombstone(key string, object T, initial bool) {
	r.changes = append(r.changes, change.Change[T]{
		Type: change.Deleted, Key: key, Old: object, New: object, Tombstone: true, Initial: initial,
	})
}

// outdated reports whether a Set is older than a version and UID, or the same state sent again.
// An equal version without a UID on both sides is no proof of that: fakes do not keep versions
// apart.
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
