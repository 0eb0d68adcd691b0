package balance

import (
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// The times are those of S1 and S4.
const (
	// settle is the time for which a member has taken before a rebalancing begins: members that
	// come together are one.
	settle = 5 * time.Second
	// patience is the time without a break for which a member is off the share, and longest the
	// time after which a rebalancing ends if its moves have not.
	patience, longest = 10 * time.Minute, 10 * time.Minute
	// pause is the time from the end of a rebalancing to the next one by weight, and after the
	// crash of a receiver to the next one by a join.
	pause = 5 * time.Minute
	// coldFor bounds a cold start.
	coldFor = 30 * time.Second
	// seesFor is the time for which it waits for members that have not seen the map.
	seesFor = time.Second
	// calm is the time without a join or an end after which two generations count as one.
	calm = 30 * time.Minute
)

// State holds what earlier tables have shown, as far as the next plan needs it. The zero value has
// seen none. It is a value: Next does not change its receiver.
type State struct {
	members   map[handover.ID]memory
	changed   time.Time // the last join or end
	cold      time.Time // since when a start is cold; zero: it is not
	began     time.Time // of the rebalancing that runs; zero without one
	ended     time.Time // of the last one
	crashed   time.Time // the last crash of a member that had got entries a short while ago
	leaver    string    // the generation of the last leaver, while two live
	hasLeaver bool
	late      slot.Set // entries of a rebalancing that ended before them
}

// memory is the part of a State for one member.
type memory struct {
	took        time.Time // since when it says that it takes
	over, under time.Time // since when it is off the share; zero: it is not
	leaving     bool
	received    time.Time // when it last got an entry, other than from one that leaves or gives
}

// Next returns the state after a look at a table, and the plan for it. Each member of the group
// calls it for each change of the table, and at Plan.Until.
func (s State) Next(t Table, now time.Time) (State, Plan) {
	b := newBoard(t)
	s.observeMembers(b, now)
	s.observeGenerations(b, now)
	s.observeMoves(b, now)
	s.observeWeights(b, now)
	s.holdBack(b, now)
	b.inherit(s, now)
	b.giveUp(s)
	if !b.plan.Mixed && s.began.IsZero() {
		s.rebalance(b, now)
	}
	b.plan.Until = s.until(b, now)
	return s, b.plan
}

// until returns the next time at which one of the limits is reached.
func (s *State) until(b *board, now time.Time) time.Time {
	if len(b.plan.Moves) > 0 || !s.began.IsZero() {
		return now
	}
	until := now.Add(calm)
	reach := func(since time.Time, limits ...time.Duration) {
		for _, limit := range limits {
			if at := since.Add(limit); at.After(now) && at.Before(until) {
				until = at
			}
		}
	}
	reach(s.changed, calm)
	reach(s.cold, seesFor, coldFor)
	reach(s.ended, pause)
	reach(s.crashed, pause)
	for _, m := range b.members {
		reach(m.took, settle, pause)
		reach(m.over, patience)
		reach(m.under, patience)
	}
	return until
}

// observeMembers records joins and ends.
func (s *State) observeMembers(b *board, now time.Time) {
	before := s.members
	s.members = make(map[handover.ID]memory, len(b.members))
	for _, m := range b.members {
		known, isOld := before[m.ID]
		if !isOld {
			s.changed = now
		}
		m.memory = known
		m.took = handover.Since(known.took, m.isLive() && m.State == handover.Takes, now)
		if m.leaving = m.State == handover.Leaving; m.leaving && !known.leaving {
			s.leaver, s.hasLeaver = m.Generation, true
		}
	}
	for id, known := range before {
		if b.byID[id] != nil {
			continue
		}
		s.changed = now
		if !known.leaving && now.Sub(known.received) < longest {
			s.crashed = now
		}
	}
}

// observeGenerations decides whether two generations live.
func (s *State) observeGenerations(b *board, now time.Time) {
	for _, m := range b.members {
		b.plan.Mixed = b.plan.Mixed || m.Generation != b.members[0].Generation
	}
	b.plan.Mixed = b.plan.Mixed && now.Sub(s.changed) < calm
	if !b.plan.Mixed {
		s.hasLeaver = false
	}
}

// observeMoves decides whether a rebalancing runs: an entry of a member that stays has a next
// owner.
func (s *State) observeMoves(b *board, now time.Time) {
	var moving slot.Set
	for i, e := range b.Entries {
		if owner := b.owners[i]; owner != nil && owner.stays() && e.Next != "" {
			moving.Add(b.First + i)
		}
	}
	s.late = s.late.And(moving)
	switch runs := !moving.Minus(s.late).IsEmpty(); {
	case runs && s.began.IsZero():
		s.began = now
	case !s.began.IsZero() && (!runs || now.Sub(s.began) >= longest):
		s.began, s.ended, s.late = time.Time{}, now, moving
	}
	if s.began.IsZero() {
		return
	}
	for i := range moving.Minus(s.late).Slots() {
		if next := b.byID[b.Entries[i-b.First].Next]; next != nil {
			next.received = now
		}
	}
}

// observeWeights records since when members are off the share, and whether a start is cold. What is
// on its way is no break: the member that is to get it may decline in the end.
func (s *State) observeWeights(b *board, now time.Time) {
	for _, m := range b.members {
		most := b.share * (1 + tolerance)
		isOver := m.weight > most || !m.over.IsZero() && m.has > most
		m.over = handover.Since(m.over, m.stays() && isOver, now)
		m.under = handover.Since(m.under, m.takes && m.weight < b.share*(1-tolerance), now)
		s.members[m.ID] = m.memory
	}
	isCold := b.dead > 0 && (b.dead > cold*b.total || !s.cold.IsZero())
	s.cold = handover.Since(s.cold, isCold, now)
}

// holdBack makes members wait that have come a short while ago, if a receiver has crashed since:
// they may be the same process. They get what no other member can own, and wait for a join, too.
func (s *State) holdBack(b *board, now time.Time) {
	for _, m := range b.members {
		m.waits = s.hasCrashed(now) && now.Sub(m.took) < pause
	}
}

// rebalance begins a rebalancing, if it is time for one.
func (s *State) rebalance(b *board, now time.Time) {
	isJoin, before := false, len(b.plan.Moves)
	for _, m := range b.members {
		m.joins = b.isPoor(m)
		isJoin = isJoin || m.joins && now.Sub(m.took) >= settle
	}
	if isJoin && !s.hasCrashed(now) {
		b.level(func(*member) bool { return true }, func(m *member) bool { return m.joins })
	}
	if len(b.plan.Moves) > before {
		return
	}
	off := func(since time.Time) bool { return !since.IsZero() && now.Sub(since) >= patience }
	isOff := slices.ContainsFunc(b.members, func(m *member) bool {
		return off(m.over) || off(m.under)
	})
	if !isOff || now.Sub(s.ended) < pause {
		return
	}
	b.level(func(m *member) bool { return off(m.over) }, func(m *member) bool { return !off(m.over) })
	b.level(func(*member) bool { return true }, func(m *member) bool { return off(m.under) })
}

// hasCrashed reports whether a receiver has crashed a short while ago.
func (s *State) hasCrashed(now time.Time) bool { return now.Sub(s.crashed) < pause }
