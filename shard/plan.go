package shard

import (
	"maps"
	"slices"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/balance"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// plan looks at the table of slots and that of controllers, if they have changed or the plan holds
// no more. All members do, as each may be the next planner.
func (m *membership) plan(l looked) {
	if l.isSame && l.now.Before(m.planUntil) {
		return
	}
	m.moves, m.planUntil = nil, time.Time{}
	if l.table == nil || l.broken != nil || l.sequence != m.member.Version() {
		return
	}
	until := l.now.Add(time.Hour)
	for kind, numbers := range kinds(l.contents) {
		if len(numbers) == 0 {
			continue
		}
		t := m.tableOf(l, numbers)
		state, plan := m.plans[kind].Next(t, l.now)
		m.plans[kind] = state
		if plan.Until.Before(until) {
			until = plan.Until
		}
		for _, move := range plan.Moves {
			m.moves = append(m.moves, handover.Move{Entry: numbers[move.Entry], To: move.To})
		}
	}
	if m.planUntil = until; until.Sub(l.now) < looks {
		m.planUntil = l.now.Add(looks)
	}
}

// kinds returns the numbers of the slots, and of the controllers.
func kinds(c handover.Map) (kinds [2][]int) {
	for i := range c.Entries {
		if i < slot.Count {
			kinds[0] = append(kinds[0], i)
		} else if !isVacant(c, i) {
			kinds[1] = append(kinds[1], i)
		}
	}
	return kinds
}

// tableOf returns the table of some entries, which have the numbers of their order in it.
func (m *membership) tableOf(l looked, numbers []int) balance.Table {
	t := balance.Table{
		Entries: make([]handover.Entry, 0, len(numbers)),
		Members: make([]balance.Member, 0, len(l.peers)),
	}
	for _, i := range numbers {
		e := l.contents.Entries[i]
		if e.Owner != "" {
			if weight, ok := l.records[e.Owner].Weights[i]; ok {
				e.Weight = weight
			}
		}
		t.Entries = append(t.Entries, e)
	}
	areSlots := len(numbers) > 0 && numbers[0] < slot.Count
	for id, p := range l.peers {
		if p.Standing == handover.Ended {
			continue
		}
		r := l.records[id]
		row := balance.Member{ID: id, Peer: p, Generation: r.Generation}
		if areSlots {
			row.Lacks = len(r.Lacks)
		} else {
			for n, i := range numbers {
				name := nameOf(l.contents, i)
				if !slices.Contains(r.Controllers, name) || slices.Contains(r.Lacks, name) {
					row.Cannot.Add(n)
				}
			}
		}
		t.Members = append(t.Members, row)
	}
	return t
}

// offeredBy returns the controllers that live members can lead, in order.
func offeredBy(
	peers map[handover.ID]handover.Peer, records map[handover.ID]*handover.Record,
) []string {
	names := map[string]bool{}
	for id, p := range peers {
		if p.Standing == handover.Live && p.Joined {
			for _, name := range records[id].Controllers {
				names[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// isOwnTurn reports whether this member is to act on what all members see: the planner at once, and
// others one after the other, later.
func (m *membership) isOwnTurn(l looked) bool {
	ended, isOrphaned := handover.EndedOf(l.peers), false
	for _, e := range m.member.Entries() {
		isOrphaned = isOrphaned || e.Owner == "" || ended[e.Owner]
	}
	m.orphansAt = handover.Since(m.orphansAt, isOrphaned, l.now)
	return !isOrphaned || handover.Planner(l.peers) == m.id || l.now.Sub(m.orphansAt) >= m.turnOf(l)
}

// turnOf returns the time for which this member waits so that others act first on the map: the live
// members that have joined and have a lower identity.
func (m *membership) turnOf(l looked) time.Duration {
	return m.turnAmong(l, func(p handover.Peer) bool { return p.Joined })
}

// turnAmong returns the time for which this member waits so that those live members act first that
// acts selects and that have a lower identity.
func (m *membership) turnAmong(l looked, acts func(handover.Peer) bool) time.Duration {
	rank := 0
	for id, p := range l.peers {
		if p.Standing == handover.Live && id < m.id && acts(p) {
			rank++
		}
	}
	return handover.Turn(rank, m.group.o.Duration)
}

// weight returns the newest weight of an entry, which its owner reports; 0 without one.
func (l looked) weight(i int) uint32 {
	if owner := l.contents.Entries[i].Owner; owner != "" {
		return l.records[owner].Weights[i]
	}
	return 0
}
