package queue

import (
	"cmp"
	"slices"
	"time"
)

// Wait describes a key that is not idle, or waits for a requeue.
type Wait struct {
	Key   string
	State State
	// For is the time for which the key has been queued, or in its state.
	For time.Duration
	// Band and Flow are those of a queued key. Place is the number of keys of its flow that start
	// before it; only Wait counts it.
	Band  Band
	Flow  string
	Place int
	// Limited reports whether a queued key waits though a worker is free: its flow holds all others.
	Limited bool
	// Failures is the number of failures in a row.
	Failures int
	// Next is the time until the key is queued by itself, if Timed is set.
	Next  time.Duration
	Timed bool
}

// Waits returns up to limit keys of each state but Idle, those that have been in it for the longest
// time first. It visits every flow.
func (q *Queue[R]) Waits(limit int) []Wait {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	var queued []Wait
	take := func(l list, to []Wait) []Wait {
		for i, n := l.first, 0; i != nobody && n < limit; i, n = q.s.entries.at(i).next, n+1 {
			to = append(to, q.s.wait(now, i))
		}
		return to
	}
	for _, f := range q.s.flows {
		for _, band := range f.bands {
			queued = take(band, queued)
		}
	}
	slices.SortFunc(queued, func(a, b Wait) int {
		return cmp.Or(cmp.Compare(b.For, a.For), cmp.Compare(a.Key, b.Key))
	})
	all := queued[:min(len(queued), limit)]
	for _, state := range []State{BackingOff, Parked, Running} {
		all = take(q.s.lists[state], all)
	}
	return all
}

// Wait describes a key; ok is false if it is idle and nothing is requested of it. It visits the
// queued keys of its flow.
func (q *Queue[R]) Wait(key string) (w Wait, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.s.index.get(key)
	if !ok {
		return Wait{}, false
	}
	w = q.s.wait(q.now(), i)
	if w.State != Queued {
		return w, true
	}
	e, step := q.s.entries.at(i), int64(q.s.o.Step)
	for b, band := range e.flow.bands {
		for j := band.first; j != nobody; j = q.s.entries.at(j).next {
			other := q.s.entries.at(j)
			order := cmp.Or(cmp.Compare(other.since+int64(b)*step, e.since+int64(e.band)*step),
				cmp.Compare(Band(b), e.band))
			if order > 0 || j == i {
				break // the band is sorted by time
			}
			w.Place++
		}
	}
	return w, true
}

func (s *schedule[R]) wait(now int64, i uint32) Wait {
	e := s.entries.at(i)
	since := e.since
	if at, ok := s.promoted[i]; ok {
		since = at
	}
	w := Wait{
		Key: e.key, State: e.state, For: time.Duration(now - since), Failures: int(e.failures),
	}
	if e.state == Queued {
		w.Band, w.Flow, w.Limited = e.band, e.flow.name, !s.ready.contains(e.flow)
	}
	due, ok := s.timers.due(i)
	w.Next, w.Timed = time.Duration(max(0, due-now)), ok
	return w
}
