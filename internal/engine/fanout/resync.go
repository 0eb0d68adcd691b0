package fanout

import "time"

// Replay puts a resync for one subscription into the log: its handler is called
// with an Updated, marked Resync, for everything in the snapshot, after the changes that were
// published before and before those that are published later. The caller makes sure that the
// snapshot is the state at the end of the log and stays as it is.
//
// While a replay of the subscription is pending, another one is nothing new and
// is ignored. While its backlog is being folded, the replay is put off: the
// subscription is due for resync as soon as it has caught up.
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
		s.owed, s.owedAt = true, time.Now()
	default:
		s.replay, s.replayAt = snapshot, l.end.Load()
		s.wake()
	}
}

// replayPending reports whether a replay has not been delivered, under mu.
func (s *Subscription[T]) replayPending() bool { return s.replay != nil || s.replaying }

// NextResync returns when the next subscription is due for resync, which may be
// past, and false if no resync is to come. It changes when ResyncChanged receives and after
// DueForResync.
func (l *Log[T]) NextResync() (time.Time, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var next time.Time
	found := false
	for _, s := range l.subs {
		if at, ok := s.dueLocked(); ok && (!found || at.Before(next)) {
			next, found = at, true
		}
	}
	return next, found
}

// ResyncChanged returns a channel that receives when NextResync may have become
// earlier: a subscription with a period was added, or one that was behind has
// caught up. It has room for one value and is for one receiver.
func (l *Log[T]) ResyncChanged() <-chan struct{} { return l.resync }

// DueForResync returns the subscriptions that are due at the given time, in the
// order in which they were added, and takes it that the caller replays the
// cache to them. The next resync is due a whole number of periods after the
// last one was, so that resyncs spread by ResyncOffset stay spread. One whose
// last replay is still pending sits this one out; one that is behind is due
// when it has caught up.
func (l *Log[T]) DueForResync(now time.Time) []*Subscription[T] {
	l.mu.Lock()
	defer l.mu.Unlock()
	var due []*Subscription[T]
	for _, s := range l.subs {
		at, ok := s.dueLocked()
		if !ok || at.After(now) {
			continue
		}
		s.owed = false
		if s.period > 0 && !s.due.After(now) {
			s.due = s.due.Add((now.Sub(s.due)/s.period + 1) * s.period)
		}
		s.mu.Lock()
		if !s.replayPending() {
			due = append(due, s)
		}
		s.mu.Unlock()
	}
	return due
}

// dueLocked returns when the subscription is due for resync, if it is. It is
// called under Log.mu.
func (s *Subscription[T]) dueLocked() (time.Time, bool) {
	switch {
	case s.detached:
		return time.Time{}, false
	case s.owed:
		return s.owedAt, true
	}
	return s.due, s.period > 0
}

// resyncChanged leaves the token for ResyncChanged.
func (l *Log[T]) resyncChanged() {
	select {
	case l.resync <- struct{}{}:
	default:
	}
}
