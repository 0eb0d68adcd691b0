package handover

import (
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// The times of a hand-over are those of S2.
const (
	// firstT is the age of a call above which an entry is not closed, and the time for which it
	// stays closed: the longest wait of a key for the call of another one.
	firstT = time.Second
	// longestT bounds T. It rises once hardTries have passed: a slot with calls that overlap never
	// has a time without a call that is older than a second.
	longestT  = 30 * time.Second
	hardTries = 5 * time.Minute
	// firstPause and longestPause bound the time between two tries.
	firstPause, longestPause = 5 * time.Second, time.Minute
)

// Calls is the report of the handler about the calls of an entry.
type Calls = slot.Calls

// tries are the times of the tries to hand an entry over.
type tries struct {
	began  time.Time // of the first one
	next   time.Time // of the next one
	until  time.Time // the end of the present one
	failed int
	hard   int // those that failed after hardTries
}

func (t *tries) t() time.Duration { return min(firstT<<min(t.hard, 10), longestT) }

// fail ends a try.
func (t *tries) fail(now time.Time) {
	t.next = now.Add(min(firstPause<<min(t.failed, 10), longestPause))
	t.failed++
	if now.Sub(t.began) >= hardTries {
		t.hard++
	}
}

// Hurry begins the tries of all entries anew, as the member leaves or gives from now on.
func (m *Member) Hurry() {
	for i := range m.locals {
		m.locals[i].tries = tries{until: m.locals[i].tries.until}
	}
}

// Try goes on with the hand-over of an entry. gives reports that the member leaves or gives: it
// hands over with unknown versions rather than not. wake is the time at which Try is to be called
// again, zero if the next event leads on. Acts has the calls of the handler that follow.
func (m *Member) Try(i int, now time.Time, c Calls, gives bool) (wake time.Time) {
	l := &m.locals[i]
	if m.Final && m.entries[i].Owner == m.Self && l.served && !l.drained {
		l.closed = true
	}
	if !m.isWanted(i) {
		return wake
	}
	switch m.Phase(i) {
	case Filling:
		l.closed = true
		m.Drain(i, Calls{})
	case Reaching:
		l.closed = true
		if !l.served {
			m.Drain(i, Calls{})
		}
	case Open:
		return m.tryToClose(i, now, c)
	case Closed:
		return m.tryToDrain(i, now, c, gives)
	}
	return wake
}

// tryToClose closes an entry that is open, unless a call of it is too old. Such a try fails too: T
// would never rise for calls that overlap.
func (m *Member) tryToClose(i int, now time.Time, c Calls) (wake time.Time) {
	t := &m.locals[i].tries
	if t.began.IsZero() {
		t.began = now
	}
	if now.Before(t.next) {
		return t.next
	}
	if c.Running > 0 && now.Sub(c.Oldest) > t.t() {
		t.fail(now)
		return t.next
	}
	m.locals[i].closed, t.until = true, now.Add(t.t())
	return t.until
}

// tryToDrain hands over an entry that is closed, or opens it again.
func (m *Member) tryToDrain(i int, now time.Time, c Calls, gives bool) (wake time.Time) {
	l := &m.locals[i]
	if l.served && !l.shut {
		return wake // the handler is still to close: its report is older
	}
	t := &l.tries
	isOver := t.until.IsZero() || !now.Before(t.until) // zero for an entry that was not opened
	switch {
	case c.Running == 0 && (c.Known || !c.Opened || gives && isOver):
		m.Drain(i, c)
	case !isOver:
		return t.until
	case m.Final: // the next look at the calls leads on
	default:
		t.fail(now)
		m.Reopen(i)
		return t.next
	}
	return wake
}
