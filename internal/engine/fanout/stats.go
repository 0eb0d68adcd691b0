package fanout

import (
	"time"

	"github.com/tidings-go/tidings/internal/see/histogram"
)

// Stats are the figures of a subscription at one moment.
type Stats struct {
	// Pending is the number of notifications that were published and not yet returned from, folded
	// ones not counted. Healthy: small, falling back to 0. Of a late subscriber's initial set and
	// of a resync nothing is counted.
	Pending int
	// Initial is the number of Pending that do not count towards the limit: adds of the first list.
	Initial int
	// Delivered is the number of calls that have ended, with initial sets and resyncs, also those
	// that panicked.
	Delivered uint64
	// Folded is the number of notifications that the handler was or will not be called with,
	// because they were folded into another or, with ConflateState, cancelled out. Healthy: not
	// growing.
	Folded uint64
	// LeftOut is the number of objects, counted by incarnation, that came and went before the
	// handler was called for them (ConflateState).
	LeftOut uint64
	// Calls measures the time that calls took. Up to 16 fast calls are counted with their mean.
	// Calls whose time is not known yet are missing.
	Calls histogram.Durations
	// Panics is the number of calls that panicked or called runtime.Goexit. The notification of
	// each is lost. Healthy: 0.
	Panics uint64
	// Behind reports whether the backlog went beyond the limit and is being folded until the
	// handler has caught up. Healthy: false.
	Behind bool
	// Unseen is the number of objects, counted by incarnation, whose whole lifetime is in the
	// folded backlog (ConflateUpdates). This is the part of a backlog that has no bound. Healthy:
	// 0.
	Unseen int
	// Key is the key that the running call is about, empty if none is running.
	Key string
	// Since is when the running call began, zero if none is running. While calls are fast, it may
	// be when one of the 15 calls before began, because the clock is read for every 16th.
	Since time.Time
}

// Stats returns the subscription's figures. It may be called at any time, also by the handler.
// After Remove, Pending counts the notifications that were dropped.
func (s *Subscription[T]) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	size := s.dropped
	if !s.stopped.Load() {
		size = s.pendingLocked()
	}
	returned := s.returnedLocked()
	st := Stats{
		Pending: size.pending, Initial: size.initial, Unseen: size.unseen,
		Delivered: s.delivered + uint64(returned),
		Folded:    s.folded, LeftOut: s.leftOut,
		Calls:  s.calls.Durations(),
		Panics: s.panics.Load(),
		Behind: s.detached,
	}
	if s.backlog != nil {
		st.Folded += s.backlog.folded
		st.LeftOut += s.backlog.leftOut
	}
	if returned < len(s.run.calls) {
		st.Key = s.run.calls[returned].Key
		st.Since = s.log.epoch.Add(time.Duration(s.since.Load()))
	}
	return st
}

// backlogSize counts the pending notifications.
type backlogSize struct{ pending, initial, unseen int }

// returnedLocked returns the number of calls of the run that have returned, under mu.
func (s *Subscription[T]) returnedLocked() int {
	if s.run.fromLog {
		return int(s.done.Load() - s.run.first)
	}
	return int(s.index.Load())
}

// pendingLocked returns how much is pending, under mu.
func (s *Subscription[T]) pendingLocked() backlogSize {
	if s.backlog == nil {
		initials, done := s.initials.Load(), s.done.Load()
		return backlogSize{
			pending: int(s.log.end.Load() - done),
			initial: int(s.log.initials.Load() - initials),
		}
	}
	size := backlogSize{s.backlog.count, s.backlog.initial, s.backlog.unseen}
	if s.run.counted {
		rest := s.run.calls[s.returnedLocked():]
		size.pending += len(rest)
		for i := range rest {
			if rest[i].Initial {
				size.initial++
			}
		}
	}
	return size
}
