package queue

import (
	"cmp"
	"slices"
	"time"
)

// maxFlows is the number of flows in Stats: those with the most queued keys.
const maxFlows = 10

// Stats are the figures of a queue at one moment.
type Stats struct {
	// Queued is the number of queued keys by band. Healthy: falling back to 0.
	Queued [bands]int
	// Running, Parked and BackingOff are the numbers of keys in these states.
	Running, Parked, BackingOff int
	// Oldest is the key that has been queued for the longest time, and Waiting that time. They
	// are empty and 0 if no key is queued.
	Oldest  string
	Waiting time.Duration
	// Limited reports whether Oldest waits though a worker is free: its flow holds all others.
	Limited bool
	// Flows are the ten flows with the most queued keys.
	Flows []FlowStats
}

// FlowStats are the figures of a flow.
type FlowStats struct {
	Name            string
	Queued, Running int
}

// KeyStats are the figures of a key.
type KeyStats struct {
	Key string
	// For is the time for which the key has been in its state.
	For time.Duration
}

// Stats returns the figures. It visits every flow, and the keys that have changed their band.
func (q *Queue[R]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, owner := q.now(), (*flow)(nil)
	st := Stats{
		Queued: q.s.queued, Running: q.s.lists[Running].length, Parked: q.s.lists[Parked].length,
		BackingOff: q.s.lists[BackingOff].length,
	}
	for _, f := range q.s.flows {
		if f.queued == 0 {
			continue
		}
		st.Flows = append(st.Flows, FlowStats{f.name, f.queued, f.running})
		for _, band := range f.bands {
			if band.first == nobody {
				continue
			}
			e := q.s.entries.at(band.first)
			if waiting := time.Duration(now - e.since); st.Oldest == "" || waiting > st.Waiting {
				st.Oldest, st.Waiting, owner = e.key, waiting, f
			}
		}
	}
	for i, since := range q.s.promoted {
		if waiting := time.Duration(now - since); waiting > st.Waiting {
			e := q.s.entries.at(i)
			st.Oldest, st.Waiting, owner = e.key, waiting, e.flow
		}
	}
	st.Limited = owner != nil && !q.s.ready.contains(owner)
	slices.SortFunc(st.Flows, func(a, b FlowStats) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(a.Name, b.Name))
	})
	st.Flows = st.Flows[:min(len(st.Flows), maxFlows)]
	return st
}

// Late returns the keys that have been queued in their band, or parked, for longer than d, and the
// running keys with a change that has waited for longer than d.
func (q *Queue[R]) Late(d time.Duration) (late []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := q.now() - int64(d)
	visit := func(l list) {
		for i := l.first; i != nobody; {
			e := q.s.entries.at(i)
			if e.since >= before {
				return
			}
			late, i = append(late, e.key), e.next
		}
	}
	visit(q.s.lists[Parked])
	for _, f := range q.s.flows {
		for _, band := range f.bands {
			visit(band)
		}
	}
	for i, at := range q.s.changed {
		if at < before {
			late = append(late, q.s.entries.at(i).key)
		}
	}
	return late
}

// Keys returns up to limit keys in a state other than Idle and Queued, those that have been in it
// for the longest time first.
func (q *Queue[R]) Keys(state State, limit int) []KeyStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	var all []KeyStats
	for i := q.s.lists[state].first; i != nobody && len(all) < limit; {
		e := q.s.entries.at(i)
		all = append(all, KeyStats{e.key, time.Duration(q.now() - e.since)})
		i = e.next
	}
	return all
}
