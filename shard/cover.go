package shard

import (
	"time"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// uncoveredLocked returns the entries without a live owner that reports them in order. Without a
// map it returns all slots.
func (g *Group) uncoveredLocked() (uncovered slot.Set) {
	if g.view.entries == nil {
		return slot.All()
	}
	for i, e := range g.view.entries {
		if g.view.isFree(i) {
			continue
		}
		inOrder := g.observedLocked(e.Owner).record.serving.Has(i)
		if !inOrder || g.standingLocked(e.Owner) != protocol.Live {
			uncovered.Add(i)
		}
	}
	return uncovered
}

// tolerated is the time for which an entry may be uncovered: a crash is noticed, and a hand-over
// ends, in it.
func (g *Group) tolerated() time.Duration { return g.o.HandOver + g.o.Duration }

// unlisted is the key of the controllers without an entry in Group.uncovered.
const unlisted = -1

// noteCoverLocked records since when entries are uncovered. It returns the uncovered entries, and
// the names of those that are uncovered for longer than tolerated.
func (g *Group) noteCoverLocked() (uncovered slot.Set, long string) {
	uncovered = g.uncoveredLocked()
	g.noteServedLocked(uncovered)
	var late slot.Set
	for i := range slot.Entries {
		if g.noteLocked(i, uncovered.Has(i)) > g.tolerated() {
			late.Add(i)
		}
	}
	names := g.unlistedLocked()
	if g.noteLocked(unlisted, len(names) > 0) <= g.tolerated() {
		names = nil
	}
	return uncovered, g.view.names(late, names...)
}

// noteLocked records since when an entry is uncovered, and returns for how long it has been.
func (g *Group) noteLocked(i int, isUncovered bool) time.Duration {
	if !isUncovered {
		delete(g.uncovered, i)
		return 0
	}
	if _, ok := g.uncovered[i]; !ok {
		g.uncovered[i] = g.clock.Now()
	}
	return g.clock.Since(g.uncovered[i])
}

// watchCoverLocked logs entries that are uncovered for longer than tolerated, once a minute.
func (g *Group) watchCoverLocked() {
	_, long := g.noteCoverLocked()
	if long != "" && time.Since(g.alarm) >= time.Minute {
		g.alarm = time.Now()
		g.log.Error("slots are covered by no member", "slots", long, "for", g.uncoveredForLocked())
	}
}

// uncoveredForLocked returns the time for which the longest uncovered entry has been uncovered.
func (g *Group) uncoveredForLocked() (longest time.Duration) {
	for _, since := range g.uncovered {
		longest = max(longest, g.clock.Since(since))
	}
	return longest
}
