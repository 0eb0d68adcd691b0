package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/plan"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

const (
	// retry is the time for which a move is not tried again.
	retry = time.Minute
	// maxFailed is the number of moves to one member that may fail in that time before no other
	// move to it is tried.
	maxFailed = 4
)

// planner holds the state of earlier plans that the next ones need, and the failures that each member
// observes, as it may be the next planner.
type planner struct {
	failed   failures                    // of members, by part: they did not warm or serve
	relieved failures                    // of entries, by number: their owners did not serve them
	tried    map[protocol.Move]time.Time // the times of moves that were written, and have not succeeded
	uneven   [2]time.Time                // since when slots and controllers are uneven; zero: even
	loads    map[int]float64             // of slots, as their owners have reported last
}

// noteLoadsLocked keeps the loads that a member reports. A slot that has moved keeps its last load
// until the new owner reports one.
func (g *Group) noteLoadsLocked(id protocol.ID, r record) {
	for n := range slotsOf(r.serving).Slots() {
		if n < len(g.view.entries) && g.view.entries[n].Owner == id {
			g.plan.loads[n] = r.loads[n]
		}
	}
}

// planLocked returns the heirs of members that have ended, and the moves to begin. Only the planner
// begins moves. It names heirs at once; other members name heirs later, if the planner has not.
// Slots and controllers are planned separately.
func (m *membership) planLocked() (heirs map[int]protocol.ID, moves []protocol.Move) {
	g := m.group
	heirs = map[int]protocol.ID{}
	inherits, plans := m.inheritsLocked(), m.plansLocked()
	if !plans {
		g.plan.uneven = [2]time.Time{}
	}
	if !inherits && !plans {
		return nil, nil
	}
	for kind, numbers := range g.view.kinds() {
		numbers = slices.DeleteFunc(numbers, g.isStuckLocked)
		in, uneven := g.inputLocked(numbers), &g.plan.uneven[kind]
		if inherits {
			ended := func(id protocol.ID) bool { return g.standingLocked(id) == protocol.Ended }
			for i, id := range in.Heirs(ended) {
				heirs[numbers[i]] = id
			}
		}
		if !plans {
			continue
		}
		switch {
		case !in.IsUneven():
			*uneven = time.Time{}
		case uneven.IsZero():
			*uneven = time.Now()
		default:
			in.Uneven = time.Since(*uneven)
		}
		for _, move := range in.Moves() {
			moves = append(moves, protocol.Move{Entry: numbers[move.Entry], To: move.To})
		}
	}
	return heirs, moves
}

// isStuckLocked reports whether an entry has had no live owner for long, and cannot have another one,
// as the Lease of the owner cannot be written. The others are planned without it.
func (g *Group) isStuckLocked(n int) bool {
	owner := g.view.entries[n].Owner
	s := g.observedLocked(owner)
	return owner != "" && !s.ended && g.expiredLocked(s) > g.tolerated()
}

func (m *membership) plansLocked() bool { return m.group.plannerLocked() == m.id }

// inheritsLocked reports whether this member is to give away the entries of members that have ended.
func (m *membership) inheritsLocked() bool {
	g, turn, waits := m.group, m.turnLocked(), false
	for i, e := range g.view.entries {
		if g.view.isFree(i) || e.Owner != "" && g.standingLocked(e.Owner) != protocol.Ended {
			delete(m.orphans, i)
			continue
		}
		if _, ok := m.orphans[i]; !ok {
			m.orphans[i] = g.clock.Now()
		}
		waits = waits || g.clock.Since(m.orphans[i]) < turn
	}
	return len(m.orphans) > 0 && !waits
}

// inputLocked returns the input of the plan for some entries. A member takes part once its Lease
// names the map. Controllers have no load: a move makes calls for all keys, and must not lead to the
// next move.
func (g *Group) inputLocked(numbers []int) plan.Input {
	in := plan.Input{Loads: map[int]float64{}}
	for i, n := range numbers {
		in.Entries = append(in.Entries, g.view.entries[n])
		if load, ok := g.plan.loads[n]; ok {
			in.Loads[i] = load
		}
	}
	for _, id := range g.joinedLocked() {
		s := g.observedLocked(id)
		in.Members = append(in.Members, plan.Member{
			ID: id, Generation: s.record.generation, Joined: s.joinedAt(),
			Leaving: s.record.leaving || g.present != nil && g.present.id == id && g.present.leaving,
		})
	}
	silent := g.silentLocked()
	unserved := g.unservedLocked(silent)
	doubtful := g.doubtfulLocked(unserved, silent)
	in.Confidence = func(entry int, id protocol.ID) plan.Confidence {
		n := numbers[entry]
		isNoRelief := unserved.Has(n) && (silent[id] > 0 || g.hasRecoveredLocked(id))
		if n < slot.Count && (doubtful[id] || isNoRelief) {
			return plan.Doubtful
		}
		return g.plan.failed[partOf(n, id)].confidence(g.clock)
	}
	in.Unserved = func(entry int) bool {
		n := numbers[entry]
		return unserved.Has(n) && g.plan.relieved[protocol.Move{Entry: n}].confidence(g.clock) != plan.Doubtful
	}
	if len(numbers) > 0 && numbers[0] < slot.Count { // the load of controllers is not known
		in.Unproven = func(id protocol.ID) bool { return slotsOf(g.observedLocked(id).record.serving).IsEmpty() }
	}
	failed := map[protocol.ID]int{}
	for move, at := range g.plan.tried {
		if e := g.view.entries[move.Entry]; time.Since(at) >= retry || e.Owner == move.To {
			delete(g.plan.tried, move) // it succeeded, and may be needed again
		} else if e.Next != move.To {
			failed[move.To]++
		}
	}
	in.Avoid = func(move protocol.Move) bool {
		_, ok := g.plan.tried[protocol.Move{Entry: numbers[move.Entry], To: move.To}]
		return ok || failed[move.To] >= maxFailed
	}
	in.Can = func(entry int, id protocol.ID) bool {
		return g.canOwnLocked(g.view.contents, id, numbers[entry])
	}
	return in
}

// canOwnLocked reports whether a member can own an entry of the map.
func (g *Group) canOwnLocked(c contents, id protocol.ID, n int) bool {
	return n < slot.Count || slices.Contains(g.observedLocked(id).record.controllers, c.name(n))
}

// listControllersLocked updates the controllers of a map to those that members can lead. The entry of
// a controller that no member can lead becomes free when its owner has ended.
func (g *Group) listControllersLocked(c *contents) (changed bool) {
	offered := g.offeredLocked()
	c.controllers = slices.Clone(c.controllers)
	for i, name := range c.controllers {
		e := &c.entries[slot.Count+i]
		isOwned := e.Owner != "" && g.standingLocked(e.Owner) != protocol.Ended
		if name != "" && !offered[name] && !isOwned {
			c.controllers[i], *e, changed = "", protocol.Entry{Epoch: e.Epoch + 1}, true
		}
		delete(offered, name)
	}
	for _, name := range slices.Sorted(maps.Keys(offered)) {
		if i := slices.Index(c.controllers, ""); i >= 0 {
			c.controllers[i], changed = name, true
		} else if len(c.controllers) < slot.MaxControllers {
			c.controllers, c.entries = append(c.controllers, name), append(c.entries, protocol.Entry{})
			changed = true
		}
	}
	return changed
}

// offeredLocked returns the controllers that live members can lead.
func (g *Group) offeredLocked() map[string]bool {
	offered := map[string]bool{}
	for _, id := range g.joinedLocked() {
		for _, name := range g.observedLocked(id).record.controllers {
			offered[name] = true
		}
	}
	return offered
}

// noteMoveLocked counts the move of an entry that ended, if it concerns this process. It reports
// whether a hand-over was taken back.
func (g *Group) noteMoveLocked(before, now protocol.Entry) (takenBack bool) {
	self := g.present.id
	switch {
	case before.Owner != now.Owner && now.Owner == self:
		g.moves.In++
	case before.Owner != now.Owner && before.Owner == self:
		g.moves.Out++
	case now.Owner == self && before.Owner == self && before.Next != "" && now.Next != before.Next:
		g.moves.TakenBack++
		return true
	}
	return false
}
