package shard

import (
	"time"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/plan"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

const (
	// retry is how long a move is not tried again.
	retry = time.Minute
	// maxFailed is how many moves to one member may fail in that time before there are no more.
	maxFailed = 4
)

// planner is what the plan remembers.
type planner struct {
	tried  map[protocol.Move]time.Time // moves that were written, and have not succeeded
	uneven time.Time                   // since when loads are uneven; zero if they are not
}

// planLocked returns who inherits from members that have ended, and the moves to begin. The planner
// acts at once, and the others if it does not.
func (m *membership) planLocked() (heirs map[int]protocol.ID, moves []protocol.Move) {
	g := m.group
	in := g.inputLocked()
	turn, waits := m.turnLocked(), false
	for i, e := range in.Entries {
		if e.Owner != "" && g.standingLocked(e.Owner) != protocol.Ended {
			delete(m.orphans, i)
			continue
		}
		if _, ok := m.orphans[i]; !ok {
			m.orphans[i] = g.clock.Now()
		}
		waits = waits || g.clock.Since(m.orphans[i]) < turn
	}
	if len(m.orphans) > 0 && !waits {
		heirs = in.Heirs(func(id protocol.ID) bool { return g.standingLocked(id) == protocol.Ended })
	}
	if protocol.Planner(g.membersLocked(), g.standingLocked) != m.id {
		g.plan.uneven = time.Time{}
		return heirs, nil
	}
	switch uneven := in.IsUneven(); {
	case !uneven:
		g.plan.uneven = time.Time{}
	case g.plan.uneven.IsZero():
		g.plan.uneven = time.Now()
	default:
		in.Uneven = time.Since(g.plan.uneven)
	}
	return heirs, in.Moves()
}

// inputLocked returns what the plan depends on. A member takes part once its Lease names the map.
func (g *Group) inputLocked() plan.Input {
	in := plan.Input{Entries: g.view.entries, Loads: make([]float64, slot.Count)}
	for _, id := range g.membersLocked() {
		s := g.observedLocked(id)
		if s.record.mapUID != string(g.view.table.UID) {
			continue
		}
		in.Members = append(in.Members, plan.Member{
			ID: id, Generation: s.record.generation, Joined: s.lease.CreationTimestamp.Time,
			Leaving: s.record.leaving || g.present != nil && g.present.id == id && g.present.leaving,
		})
		for i, load := range s.record.loads {
			if i >= 0 && i < slot.Count && in.Entries[i].Owner == id {
				in.Loads[i] = load
			}
		}
	}
	failed := map[protocol.ID]int{}
	for move, at := range g.plan.tried {
		if e := in.Entries[move.Entry]; time.Since(at) >= retry || e.Owner == move.To {
			delete(g.plan.tried, move) // one that succeeded may be wanted again, as when its member leaves
		} else if e.Next != move.To {
			failed[move.To]++
		}
	}
	in.Avoid = func(move protocol.Move) bool {
		_, ok := g.plan.tried[move]
		return ok || failed[move.To] >= maxFailed
	}
	return in
}

// noteMoveLocked takes note of what has become of an entry.
func (g *Group) noteMoveLocked(i int, before, now protocol.Entry) {
	self := g.present.id
	switch {
	case before.Owner != now.Owner && now.Owner == self:
		g.moves.In++
	case before.Owner != now.Owner && before.Owner == self:
		g.moves.Out++
	case now.Owner == self && before.Owner == self && before.Next != "" && now.Next != before.Next:
		g.moves.TakenBack++
		g.log.Warn("a hand-over is taken back: it was late, or the next owner left or ended",
			"slot", i, "next", before.Next)
	}
}
