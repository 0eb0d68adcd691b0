package reflector

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/source"
)

// This file has the steps that lists in pages and streamed lists share.

// beginList begins a list of the collection, and returns the place for its objects.
func (r *Reflector[T]) beginList(ctx context.Context) *staged[T] {
	r.demand.meet()
	r.countListed(0)
	r.recorder.enter(health.StateListing)
	l := &staged[T]{stays: map[string]delta.Unusable{}, expected: r.lastListed, isOlder: r.history.isOlder}
	if r.o.Slots != nil {
		l.adds = r.o.Slots.Adds()
		l.held = r.held()
	}
	l.asked = r.selection(ctx) // of the slots that have come by these additions, or more
	return l
}

// countListed sets the number of staged objects in health, beside those of a list of slots.
func (r *Reflector[T]) countListed(n int) {
	r.recorder.change(func(h *health.Watch) { h.Listed += n - r.counted })
	r.counted = n
}

// countEvery is the number of cached objects that are counted at once in health: a source may find
// any number of them before it yields an object.
const countEvery = 1000

// unlessRewound returns isCached, or nil if the source must decode every object: before the
// first list nothing is cached, and after a rewind the cache may be of another history.
func (r *Reflector[T]) unlessRewound(isCached source.IsCached) source.IsCached {
	if !r.listed || r.history.rewound {
		return nil
	}
	return isCached
}

// stageCached stages the cached object if it is the described one, and reports whether it is.
// That object was accepted and transformed when it was cached. Objects whose versions cannot be
// compared must all be decoded: of those, the last one in the list counts.
func (r *Reflector[T]) stageCached(l *staged[T], key, version, uid string) bool {
	if !isNumber(version) || uid == "" || !strings.HasPrefix(key, r.o.Partition) {
		return false
	}
	obj, knownVersion, knownUID, ok := r.o.Known(key)
	if !ok || knownVersion != version || knownUID != uid {
		return false
	}
	l.addCached(delta.Item[T]{Key: l.keep(key), Version: knownVersion, UID: knownUID, Object: obj})
	if l.len()%countEvery == 0 {
		r.countListed(l.len())
	}
	return true
}

// stage stages a decoded object. It reports whether the object belongs to the collection.
func (r *Reflector[T]) stage(l *staged[T], item source.Item[T]) (accepted bool) {
	if r.ignores(&item) {
		return false
	}
	undecodable := r.undecodable(&item)
	if undecodable == nil && r.accept(item, false) != nil {
		return false
	}
	known, version, uid, ok := r.o.Known(item.Key)
	if ok && r.listed {
		l.compare(item.Key, item.Version, version)
	}
	// Without a UID an equal version proves nothing: fakes have one version for everything.
	sameState := ok && version != "" && version == item.Version && item.UID != "" && uid == item.UID
	switch {
	case undecodable == nil && sameState && !r.history.rewound:
		item.Object = known
		l.reused = true
	case undecodable != nil || r.transform(&item) != nil:
		l.stays[item.Key] = delta.Unusable{
			Key: item.Key, Version: item.Version, UID: item.UID, Err: undecodable,
		}
		return true
	case r.o.Share != nil:
		item.Object = r.o.Share(item.Object)
	}
	l.add(delta.Item[T]{Key: item.Key, Version: item.Version, UID: item.UID, Object: item.Object})
	return true
}

// rewindIn returns why a consistent list begins a new history, nil if it does not.
func (r *Reflector[T]) rewindIn(l *staged[T], version string) error {
	if r.history.goesBack(version) {
		return r.history.rewindError(version)
	}
	if key, cached, found := l.contradicts(version); found {
		return passedError(key, cached, version)
	}
	return nil
}

// listAgain returns the state that follows a list that endList has not handed on. There is no wait
// where the next one does not have the reason: the server answers.
func (r *Reflector[T]) listAgain(ctx context.Context, step Step, err error) state[T] {
	switch {
	case errors.Is(err, errSlotsCame):
		if r.attempts.voided++; r.attempts.voided > 1 {
			return &backingOff[T]{delay(r.o.Backoff, r.attempts.voided-1, 0), r.list()}
		}
		return r.list()
	case errors.Is(err, errRewound):
		r.noteError(err)
		return r.list()
	}
	r.report(ctx, step, err)
	return r.retry(ctx, err, r.list())
}

// endList hands on the staged objects as one Replace. The next watch starts at version.
//
// A consistent list of a version before the reached one begins a new history, in which the
// versions of the old one mean nothing. So does one that has an object in an older state than the
// cache has at a version before the list. If it has cached objects in the place of listed ones, it
// fails, and the next list has none.
func (r *Reflector[T]) endList(
	ctx context.Context, l *staged[T], version string, consistent bool,
) error {
	h := &r.history
	var rewind error
	if consistent && !h.rewound { // otherwise a check has found it
		rewind = r.rewindIn(l, version)
	}
	o := delta.ReplaceOptions{
		Stays:      slices.Collect(maps.Values(l.stays)),
		NewHistory: consistent && h.rewound || rewind != nil,
	}
	if rewind != nil && l.reused {
		h.rewound = true
		return rewind
	}
	items := l.take()
	to := r.positionAfter(items, version, o.NewHistory)
	r.lastListed = len(items)
	if err := r.replace(ctx, l, version, items, o); err != nil {
		if errors.Is(err, delta.ErrOlder) {
			h.overtaken, h.rewound = true, consistent
		}
		return err
	}
	if o.NewHistory {
		r.o.OnRewind()
	}
	h.position, h.absent = to, absence{}
	h.recent.clear()
	h.rewound = false
	h.checked()
	r.server.lastContact = time.Now()
	a := &r.attempts
	a.lists++
	a.uselessInRow, a.undecodable, a.answered, a.voided = 0, false, false, 0
	r.countListed(0)
	r.received()
	return nil
}

// positionAfter returns the position after a list of some objects at a version.
func (r *Reflector[T]) positionAfter(items []delta.Item[T], version string, newHistory bool) position {
	h := &r.history
	to := position{version: version, resume: version, highest: version}
	if !newHistory {
		to.highest = h.higher(h.highest, version)
	}
	h.bySlot = nil
	var newest delta.Item[T]
	for i := range items {
		to.highest = h.higher(to.highest, items[i].Version)
		if !r.holds(items[i].Key, items[i].UID) {
			continue // its slot has gone
		}
		r.noteLast(lastChange{key: items[i].Key, version: items[i].Version, uid: items[i].UID})
		if h.higher(newest.Version, items[i].Version) != newest.Version {
			newest = items[i]
		}
	}
	to.last = lastChange{key: strings.Clone(newest.Key), version: newest.Version, uid: strings.Clone(newest.UID)}
	return to
}
