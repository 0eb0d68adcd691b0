package shard

import (
	"time"

	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// uncoveredLocked returns the slots without a live owner that reports them in order.
func (g *Group) uncoveredLocked() (uncovered slot.Set) {
	for i, e := range g.view.entries {
		inOrder := g.observedLocked(e.Owner).record.serving.Has(i)
		if !inOrder || g.standingLocked(e.Owner) != protocol.Live {
			uncovered.Add(i)
		}
	}
	return uncovered
}

// watchCoverLocked takes note of since when slots are uncovered. It logs those that a crash and a
// hand-over do not explain, once a minute.
func (g *Group) watchCoverLocked() {
	uncovered, long := g.uncoveredLocked(), slot.Set{}
	for i := range slot.Count {
		if !uncovered.Has(i) {
			delete(g.uncovered, i)
			continue
		}
		if _, ok := g.uncovered[i]; !ok {
			g.uncovered[i] = g.clock.Now()
		}
		if g.clock.Since(g.uncovered[i]) > g.o.HandOver+g.o.Duration {
			long.Add(i)
		}
	}
	if !long.IsEmpty() && time.Since(g.alarm) >= time.Minute {
		g.alarm = time.Now()
		g.log.Error("slots are covered by no member", "slots", long.String(), "for", g.uncoveredForLocked())
	}
}

// uncoveredForLocked returns for how long the slot is uncovered that is so the longest.
func (g *Group) uncoveredForLocked() (longest time.Duration) {
	for _, since := range g.uncovered {
		longest = max(longest, g.clock.Since(since))
	}
	return longest
}
