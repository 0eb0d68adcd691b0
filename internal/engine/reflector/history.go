package reflector

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// errRewound is a server at an older version than the one that was reached.
var errRewound = errors.New("the server's resource versions went back, as after a restored backup")

// position is the progress of a reflector. Its versions are compared within one history of the
// server only.
type position struct {
	version string // up to which everything was handed on
	resume  string // where the next watch begins: version, or the version before it
	highest string // of all objects, events and lists of this history, in whatever order
	last    lastChange
	toCheck lastChange // last, when a rewind was first suspected: a check asks for its object
	alive   lastChange // if toCheck is a delete, the newest cached object: asked for too
	absent  absence
	asked   selection // of the watch that has reached version
}

// lastChange is the latest state of all objects, or the end of one. A server that was set back to a
// state before it does not have it, whatever version it has reached since.
type lastChange struct {
	key, version, uid string
	deleted           bool
}

// absence is an object that a check did not find, and that no event has ended yet.
type absence struct {
	key     string // "" for none
	uid     string
	was     string    // the version of its last state
	until   string    // the version of the check; a watch that has reached it has brought the end
	since   time.Time // when the check was made
	watched bool      // a watch has lasted for four minutes since, and ended in order
}

// watchEnded records that a watch has ended in order.
func (a *absence) watchEnded(opened time.Time) {
	if opened.Before(a.since) {
		opened = a.since
	}
	a.watched = a.watched || a.key != "" && time.Since(opened) >= leastQuietFirst
}

// history has the reflector's knowledge of the server's versions. Only the goroutine of Run uses
// it, except for isOlder.
type history struct {
	position
	slots   *slotFilter
	compare func(a, b string) (order int, ok bool)
	newest  func(holds func(key, uid string) bool) (key, version, uid string) // Options.Newest
	// overtaken reports whether a first list was older than the state to which an earlier reflector
	// has brought the queue.
	overtaken bool
	recent    recentEvents

	// cut is set when a watch ended out of order: the server may have been set back before the next
	// one began. That one leads to a check when it brings a bookmark, or ends in order; and so does
	// the first watch that begins mostUnchecked after cutAt.
	cut   bool
	cutAt time.Time
	// suspectRewind demands a check of the server's version: it may have been set back to an older
	// state (P16). failedChecks counts checks that failed since. While a watch runs, the next one
	// is due at checkAgainAt.
	suspectRewind bool
	failedChecks  int
	checkAgainAt  time.Time
	// bySlot has the last change in each slot, for the time when the slot of last goes.
	bySlot  map[int]lastChange
	removes uint64 // of slots, up to which forgetGone has looked
	// rewound is set when a rewind was found, until a list begins the new history.
	rewound bool
}

// suspect records that the server may have been set back. A watch from a version that the server
// does not have any more is quiet until it has that version again.
func (h *history) suspect() {
	h.keepLast()
	h.suspectRewind = h.suspectRewind || isNumber(h.version)
	h.cut = false
}

// keepLast keeps the last change for a check to come: changes that come before the check may be of
// a new history.
func (h *history) keepLast() {
	if !h.cut && !h.suspectRewind {
		h.toCheck, h.alive = h.last, lastChange{}
	}
}

// keepNewest keeps the newest object for a check to come, if the last change was a delete: the server
// may be without the deleted object in any history. It may go through the whole cache, so it is called
// once per outage, and not for events that come in another order.
func (h *history) keepNewest() {
	if h.toCheck.deleted && h.alive.key == "" && isNumber(h.version) {
		h.alive.key, h.alive.version, h.alive.uid = h.newest(h.slots.has)
	}
}

// cutOff records that a watch has ended out of order. The check waits for a bookmark, so that the
// clients of a server that restarts do not check it while they all come back.
func (h *history) cutOff() {
	h.keepLast()
	if !h.cut {
		h.keepNewest()
		h.cut, h.cutAt = !h.suspectRewind && isNumber(h.version), time.Now()
	}
}

// checked records that no check is due any more.
func (h *history) checked() { h.suspectRewind, h.failedChecks, h.cut = false, 0, false }

// checkFailed records that a check has failed, and how long the server asks for a pause.
func (h *history) checkFailed(retryAfter time.Duration) {
	if h.suspectRewind {
		h.failedChecks++
		wait := max(time.Duration(h.failedChecks)*longestCheck, min(retryAfter, source.MaxRetryAfter))
		h.checkAgainAt = time.Now().Add(wait)
	}
}

// mustCheckAgain reports whether a check that failed is due again, while a watch runs.
func (h *history) mustCheckAgain() bool {
	return h.suspectRewind && h.failedChecks > 0 && !time.Now().Before(h.checkAgainAt)
}

// noteLast notes a change as the last one in its slot.
func (h *history) noteLast(change lastChange) {
	if h.slots.holding == nil {
		return
	}
	n := h.slots.holding.Key().Of(change.uid, slot.NamespaceOf(change.key))
	if h.bySlot == nil {
		h.bySlot = map[int]lastChange{}
	}
	if !h.isOlder(change.version, h.bySlot[n].version) {
		change.key, change.uid = strings.Clone(change.key), strings.Clone(change.uid)
		h.bySlot[n] = change
	}
}

// forgetGone forgets the last changes of objects whose slots have gone since it was called last:
// the ends of these objects may have come without a key, or not at all, even if the slots have come
// back.
func (h *history) forgetGone() {
	holding := h.slots.holding
	if holding == nil {
		return
	}
	var slots slot.Set
	if slots, h.removes = holding.GoneSince(h.removes); slots.IsEmpty() {
		return
	}
	key, stayed := holding.Key(), slot.All().Minus(slots)
	gone := func(object, uid string) bool { return !key.In(stayed, uid, slot.NamespaceOf(object)) }
	maps.DeleteFunc(h.bySlot, func(_ int, c lastChange) bool { return gone(c.key, c.uid) })
	if gone(h.last.key, h.last.uid) {
		h.last = lastChange{}
		for _, c := range h.bySlot {
			if h.higher(h.last.version, c.version) == c.version {
				h.last = c
			}
		}
	}
	if gone(h.toCheck.key, h.toCheck.uid) {
		h.toCheck = h.last
	}
	if gone(h.alive.key, h.alive.uid) {
		h.alive = lastChange{}
	}
	if gone(h.absent.key, h.absent.uid) {
		h.absent = absence{}
	}
}

// positionAfter returns the position after a list of some objects at a version.
func positionAfter[T any](
	h *history, items []delta.Item[T], version string, newHistory bool,
) position {
	to := position{version: version, resume: version, highest: version}
	if !newHistory {
		to.highest = h.higher(h.highest, version)
	}
	h.bySlot = nil
	var newest delta.Item[T]
	for i := range items {
		item := &items[i]
		to.highest = h.higher(to.highest, item.Version)
		if !h.slots.has(item.Key, item.UID) {
			continue // its slot has gone
		}
		h.noteLast(lastChange{key: item.Key, version: item.Version, uid: item.UID})
		if h.higher(newest.Version, item.Version) != newest.Version {
			newest = *item
		}
	}
	to.last = lastChange{
		key: strings.Clone(newest.Key), version: newest.Version, uid: strings.Clone(newest.UID),
	}
	return to
}

// lacksEnd reports whether a watch has passed the version at which an object was found absent,
// without the end of the object. While the last event is a delete, others may follow at its
// version.
func (h *history) lacksEnd() bool {
	if h.absent.key == "" || !h.slots.has(h.absent.key, h.absent.uid) {
		return false
	}
	order, ok := delta.CompareDecimal(h.resume, h.absent.until)
	return ok && order >= 0
}

// targets returns the changes that a check asks for: the last one of an object that an earlier check
// has missed, or else the last one before the suspicion, and if that is a delete, the newest object.
func (h *history) targets() []lastChange {
	switch a := h.absent; {
	case a.key != "":
		return []lastChange{{key: a.key, version: a.was, uid: a.uid}}
	case h.alive.key != "":
		return []lastChange{h.toCheck, h.alive}
	}
	return []lastChange{h.toCheck}
}

// goesBack reports whether a version that the server told is before the reached one.
func (h *history) goesBack(version string) bool {
	order, ok := delta.CompareDecimal(version, h.version)
	return ok && order < 0 || h.isOlder(version, h.highest)
}

// rewindError has the version from which the server went back.
func (h *history) rewindError(to string) error {
	from := h.higher(h.version, h.highest)
	return source.Bound(fmt.Errorf("%w: from %s to %s", errRewound, from, to)) // of any length
}

// passedError means that a server which went back has passed the reached version since.
func passedError(key, was, version string) error {
	return source.Bound(fmt.Errorf(
		"%w, and have grown since: at %s, the state of %s cannot follow that at %s",
		errRewound, version, key, was))
}

// missedError means that an object is gone, and that no watch has brought its end. The server may
// have been set back to a time before the object, or its watches are behind.
func missedError(key, version string) error {
	return source.Bound(fmt.Errorf(
		"at %s, %s is gone, and a watch of %v has not brought its end", version, key, leastQuietFirst))
}

// contradicts reports whether a present state of an object cannot be of the same history as an
// earlier change of it: it is older, or another one at the same version.
func (h *history) contradicts(version, uid string, earlier lastChange) bool {
	// Also where versions are not trusted to order states: it costs a list.
	order, ok := delta.CompareDecimal(version, earlier.version)
	another := earlier.deleted || uid != "" && earlier.uid != "" && uid != earlier.uid
	return ok && (order < 0 || order == 0 && another)
}

// higher returns b if it is known to be after a, or if a is a version that cannot be compared.
func (h *history) higher(a, b string) string {
	if b != "" && !isNumber(a) || h.isOlder(a, b) {
		return b
	}
	return a
}

// isOlder reports whether version a is known to be before b.
func (h *history) isOlder(a, b string) bool {
	order, ok := h.compare(a, b)
	return ok && order < 0
}

// isNumber reports whether a version can be compared.
func isNumber(version string) bool {
	_, ok := delta.CompareDecimal(version, version)
	return ok
}

// maxRecent is the number of events that are remembered. Servers that send events in another order
// than the order of their versions displace them by a few.
const maxRecent = 64

// recentEvents remembers the events that were handed on last. Where versions do not order states
// ([Options].Compare), the queue cannot tell an event that a resumed watch brings again from a new
// state. It is off where versions always do.
type recentEvents struct {
	off    bool
	events []recentEvent
	next   int // the place of the next event, once all are taken
}

// recentEvent has the fields that tell an event from others.
type recentEvent struct {
	key, version string
	deleted      bool
}

// add remembers an event, in the place of the oldest one.
func (r *recentEvents) add(e recentEvent) {
	if len(r.events) < maxRecent {
		r.events = append(r.events, e)
		return
	}
	r.events[r.next] = e
	r.next = (r.next + 1) % maxRecent
}

// after returns the events of later versions: a watch from this one brings them again.
func (r *recentEvents) after(version string) map[recentEvent]bool {
	var later map[recentEvent]bool
	for _, e := range r.events {
		if order, ok := delta.CompareDecimal(version, e.version); ok && order < 0 {
			if later == nil {
				later = map[recentEvent]bool{}
			}
			later[e] = true
		}
	}
	return later
}

// clear forgets all events: a list has come after them.
func (r *recentEvents) clear() { r.events, r.next = r.events[:0], 0 }
