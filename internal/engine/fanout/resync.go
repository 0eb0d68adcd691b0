package fanout

import (
	"cmp"
	"time"
)

// Replay puts a resync for one subscription into the log: its handler is called with an Updated,
// marked Resync, for everything in the snapshot, after the changes that were published before and
// before those that are published later. The caller makes sure that the snapshot is the state at
// the end of the log and stays as it is.
//
// While a replay of the subscription is pending, another one is nothing new and is ignored. While
// its backlog is being folded, the replay is put off: the subscription is due for resync as soon as
// it has caught up.
func (l *Log[T]) Replay(s *Subscription[T], snapshot Items[T]) {
	if s == nil || s.log != l || snapshot == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped.Load() || s.replayPending():
	case s.detached:
		s.schedule.owe()
	default:
		s.replay, s.replayAt = snapshot, l.end.Load()
		s.wake()
	}
}

// replayPending reports whether a replay has not been delivered, under mu.
func (p *place[T]) replayPending() bool { return p.replay != nil || p.replaying }

// schedule says when the resyncs of a subscription are due. Log.mu guards it.
type schedule struct {
	period time.Duration // 0 for none
	due    time.Time     // the next resync by the period
	owed   bool          // a resync was dropped and is due at once
	owedAt time.Time
}

func newSchedule(period, offset time.Duration) schedule {
	return schedule{period: period, due: time.Now().Add(cmp.Or(offset, period))}
}

// owe makes a resync due at once, in the place of one that is dropped.
func (c *schedule) owe() { c.owed, c.owedAt = true, time.Now() }

// next returns when the next resync is due, if one is.
func (c *schedule) next() (time.Time, bool) {
	if c.owed {
		return c.owedAt, true
	}
	return c.due, c.period > 0
}

// pass moves beyond the resyncs that are due at a time.
func (c *schedule) pass(now time.Time) {
	c.owed = false
	if c.period > 0 && !c.due.After(now) {
		c.due = c.due.Add((now.Sub(c.due)/c.period + 1) * c.period)
	}
}

// NextResync returns when the next subscription is due for resync, which may be past, and false if
// no resync is to come. It changes when ResyncChanged receives and after DueForResync.
func (l *Log[T]) NextResync() (at time.Time, found bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range l.subs {
		if due, ok := s.schedule.next(); ok && !s.detached && (!found || due.Before(at)) {
			at, found = due, true
		}
	}
	return at, found
}

// ResyncChanged returns a channel that receives when NextResync may have become earlier: a
// subscription with a period was added, or one that was behind has caught up. It has room for one
// value and is for one receiver.
func (l *Log[T]) ResyncChanged() <-chan struct{} { return l.resync }

// DueForResync returns the subscriptions that are due at the given time, in the order in which they
// were added, and takes it that the caller replays the cache to them. The next resync is due a
// whole number of periods after the last one was, so that resyncs spread by ResyncOffset stay
// spread. One whose last replay is still pending sits this one out; one that is behind is due when
// it has caught up.
func (l *Log[T]) DueForResync(now time.Time) []*Subscription[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []*Subscription[T]
	for _, s := range l.subs {
		at, ok := s.schedule.next()
		if !ok || s.detached || at.After(now) {
			continue
		}
		s.schedule.pass(now)
		s.mu.Lock()
		if !s.replayPending() {
			due = append(due, s)
		}
		s.mu.Unlock()
	}
	return due
}
