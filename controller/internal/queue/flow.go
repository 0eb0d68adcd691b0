package queue

import "time"

// flow is a set of keys that takes turns with other flows: by default, the keys of a namespace.
type flow struct {
	name       string
	bands      [bands]list // of queued keys, by the time at which they entered the band
	queued     int
	running    int
	keys       int   // entries of this flow in any state
	prev, next *flow // in the ring; nil outside it
}

// first returns the entry that is next, and its band: the one with the earliest sum of its time
// and a step for each band below the most urgent one. So a key rises one band per step.
func (f *flow) first(entries *slab[entry], step time.Duration) (uint32, Band) {
	found, foundBand, earliest := nobody, none, int64(0)
	for b := range Band(bands) {
		i := f.bands[b].first
		if i == nobody {
			continue
		}
		if due := entries.at(i).since + int64(b)*int64(step); found == nobody || due < earliest {
			found, foundBand, earliest = i, b, due
		}
	}
	return found, foundBand
}

// ring is the list of the flows that have a queued key and may start one, in the order of their
// turns.
type ring struct{ turn *flow }

// push makes a flow the last of the round.
func (r *ring) push(f *flow) {
	if r.turn == nil {
		f.prev, f.next = f, f
		r.turn = f
		return
	}
	f.prev, f.next = r.turn.prev, r.turn
	f.prev.next, f.next.prev = f, f
}

func (r *ring) remove(f *flow) {
	if f.next == f {
		r.turn = nil
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if r.turn == f {
			r.turn = f.next
		}
	}
	f.prev, f.next = nil, nil
}

func (r *ring) contains(f *flow) bool { return f.next != nil }
