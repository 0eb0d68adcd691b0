package shard

import (
	"maps"
	"time"

	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/plan"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

const (
	// maxRetry bounds the time between two trials. It begins with retry, and doubles with each failure.
	maxRetry = 8 * time.Minute
	// forget is the time after which a failure has no effect any more.
	forget = 30 * time.Minute
)

// failure describes failures in a row.
type failure struct {
	count int
	at    lease.Instant // of the last one
	over  bool          // the member has served an entry that it got later
}

// confidence returns the confidence in a member that has failed.
func (f failure) confidence(c lease.Clock) plan.Confidence {
	switch since := c.Since(f.at); {
	case f.count == 0 || f.over || since >= forget:
		return plan.Sound
	case since < min(retry<<min(f.count-1, 8), maxRetry):
		return plan.Doubtful
	default:
		return plan.OnTrial
	}
}

// failures holds failures by part, see partOf, or by entry.
type failures map[protocol.Move]failure

// partOf returns the part of a member's work that fails as a whole: all slots, as one call of Warm fills
// them, or one controller.
func partOf(n int, id protocol.ID) protocol.Move {
	if n < slot.Count {
		n = 0
	}
	return protocol.Move{Entry: n, To: id}
}

// note records a failure. Entries that fail within the time until the next trial count once.
func (all failures) note(part protocol.Move, c lease.Clock) {
	f := all[part]
	if f.confidence(c) == plan.Doubtful {
		return
	}
	if c.Since(f.at) >= forget {
		f.count = 0
	}
	all[part] = failure{count: f.count + 1, at: c.Now()}
}

// noteFailuresLocked records the failures that a change of the map shows: hand-overs were taken back
// from members that had not warmed, or entries are to leave an owner that has not served them.
func (g *Group) noteFailuresLocked(before, now []protocol.Entry) {
	maps.DeleteFunc(g.plan.failed, func(part protocol.Move, _ failure) bool {
		return g.view.members[part.To] == nil
	})
	silent := g.silentLocked()
	unserved := g.unservedLocked(silent)
	doubtful := g.doubtfulLocked(unserved, silent)
	for i := range before {
		owner, next, isReady := before[i].Owner, before[i].Next, before[i].Ready
		switch {
		case i >= len(now) || now[i].Owner != owner || now[i].Next == next:
		case next == "" && unserved.Has(i):
			g.plan.relieved.note(protocol.Move{Entry: i}, g.clock)
			if i >= slot.Count || doubtful[owner] {
				g.plan.failed.note(partOf(i, owner), g.clock)
			}
		case next != "" && !isReady && g.standingLocked(next) == protocol.Live &&
			!g.observedLocked(next).record.leaving:
			g.plan.failed.note(partOf(i, next), g.clock)
		}
	}
}

// noteServedLocked records the entries that are in order. A failure is over once its member serves an
// entry that it got later: those that it had before do not show that it can warm.
func (g *Group) noteServedLocked(uncovered slot.Set) {
	for i, e := range g.view.entries {
		if g.view.isFree(i) || uncovered.Has(i) {
			continue
		}
		g.view.times[i].inOrder = g.clock.Now()
		part := partOf(i, e.Owner)
		if f, ok := g.plan.failed[part]; ok && g.isLaterLocked(i, f) {
			f.over = true
			g.plan.failed[part] = f
		}
	}
}

// isLaterLocked reports whether the owner of an entry has got it after a failure.
func (g *Group) isLaterLocked(i int, f failure) bool {
	return g.clock.Since(g.view.times[i].owner) < g.clock.Since(f.at)
}

// silentLocked returns the members that report none of their slots in order, with the number of these
// slots.
func (g *Group) silentLocked() map[protocol.ID]int {
	uncovered, silent := g.uncoveredLocked(), map[protocol.ID]int{}
	slots := g.view.entries[:min(slot.Count, len(g.view.entries))]
	for _, e := range slots {
		silent[e.Owner]++
	}
	for i, e := range slots {
		if !uncovered.Has(i) {
			delete(silent, e.Owner)
		}
	}
	return silent
}

// hasRecoveredLocked reports whether a member has just begun to report slots in order. Others may do so
// in a moment, as after a failure of the server that all of them use.
func (g *Group) hasRecoveredLocked(id protocol.ID) bool {
	return g.clock.Since(g.observedLocked(id).serves) < g.tolerated()
}

// unservedLocked returns the entries that their owner does not report in order for twice the time that
// is tolerated: the alarm comes first. An entry that its owner has served is late, and stays, as it may
// be late elsewhere too. But an owner that reports none of several slots in order is to blame.
func (g *Group) unservedLocked(silent map[protocol.ID]int) (unserved slot.Set) {
	uncovered := g.uncoveredLocked()
	for i, e := range g.view.entries {
		t := g.view.times[i]
		isToBlame := t.inOrder == t.owner || i < slot.Count && silent[e.Owner] > 1
		if e.Owner != "" && uncovered.Has(i) && isToBlame && g.clock.Since(t.inOrder) > 2*g.tolerated() {
			unserved.Add(i)
		}
	}
	return unserved
}

// doubtfulLocked returns the members that do not serve their slots, or have a slot as a trial. One slot
// beside others in order may be to blame itself.
func (g *Group) doubtfulLocked(unserved slot.Set, silent map[protocol.ID]int) map[protocol.ID]bool {
	doubtful, counts := map[protocol.ID]bool{}, map[protocol.ID]int{}
	for i, e := range g.view.entries[:min(slot.Count, len(g.view.entries))] {
		if unserved.Has(i) {
			counts[e.Owner]++
			doubtful[e.Owner] = doubtful[e.Owner] || counts[e.Owner] > 1 || silent[e.Owner] > 0
		}
		owner, next := g.plan.failed[partOf(i, e.Owner)], g.plan.failed[partOf(i, e.Next)]
		if owner.confidence(g.clock) != plan.Sound && g.isLaterLocked(i, owner) {
			doubtful[e.Owner] = true
		}
		if next.confidence(g.clock) != plan.Sound {
			doubtful[e.Next] = true
		}
	}
	return doubtful
}
