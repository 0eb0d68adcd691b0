package shard

import (
	"time"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// uncoveredLocked returns the entries without a live owner that reports them in order: all slots
// without a map.
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

// tolerated is how long an entry may be uncovered: while a crash is found, and a hand-over runs.
func (g *Group) tolerated() time.Duration { return g.o.HandOver + g.o.Duration }

// noteCoverLocked takes note of since when entries are uncovered, and returns those that are, and
// those that are so for longer than tolerated.
func (g *Group) noteCoverLocked() (uncovered, long slot.Set) {
	uncovered = g.uncoveredLocked()
	for i := range slot.Entries {
		if !uncovered.Has(i) {
			delete(g.uncovered, i)
			continue
		}
		if _, ok := g.uncovered[i]; !ok {
			g.uncovered[i] = g.clock.Now()
		}
		if g.clock.Since(g.uncovered[i]) > g.tolerated() {
			long.Add(i)
		}
	}
	return uncovered, long
}

// watchCoverLocked logs entries that are uncovered for longer than tolerated, once a minute.
func (g *Group) watchCoverLocked() {
	_, long := g.noteCoverLocked()
	if !long.IsEmpty() && time.Since(g.alarm) >= time.Minute {
		g.alarm = time.Now()
		g.log.Error("slots are covered by no member", "slots", g.view.names(long), "for", g.uncoveredForLocked())
	}
}

// uncoveredForLocked returns for how long the entry is uncovered that is so the longest.
func (g *Group) uncoveredForLocked() (longest time.Duration) {
	for _, since := range g.uncovered {
		longest = max(longest, g.clock.Since(since))
	}
	return longest
}
