package reflector

import "github.com/tidings-go/tidings/internal/engine/delta"

// maxRecent is the number of events that are remembered. Servers that send events in another order
// than that of their versions displace them by a few.
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
