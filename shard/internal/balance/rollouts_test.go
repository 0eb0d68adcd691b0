package balance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

func TestS4_RollingUpdateWithSurge(t *testing.T) {
	g := evenGroup(t, 4, nil)
	old := slices.Clone(g.members)
	for _, p := range old {
		g.join("2")
		g.pass(time.Minute)
		g.leave(p)
		g.untilGone(p)
	}
	t.Logf("owned: %v", g.owned())
	atMost(t, "moves", g.moves, slot.Count)
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.settled(2 * time.Hour)
}

func TestS4_RollingUpdateWithFullSurge(t *testing.T) {
	g := evenGroup(t, 4, nil)
	old := slices.Clone(g.members)
	for range old {
		g.join("2")
	}
	g.pass(20 * time.Minute)
	for _, p := range old {
		g.leave(p)
		g.pass(10 * time.Second)
	}
	g.pass(time.Minute)
	t.Logf("owned: %v", g.owned())
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.settled(2 * time.Hour)
}

func TestS4_RollingUpdateWithoutSurge(t *testing.T) {
	g := evenGroup(t, 4, nil)
	for _, p := range slices.Clone(g.members) {
		g.leave(p)
		g.untilGone(p)
		g.pass(10 * time.Second)
		g.join("2")
		g.pass(time.Minute)
	}
	t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
	atMost(t, "moves of one slot", slices.Max(g.moved), 2)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.settled(2 * time.Hour)
}

func TestS4_RestartedOldContainer(t *testing.T) {
	g := evenGroup(t, 4, nil)
	old := slices.Clone(g.members)
	for i := range old {
		g.join("2")
		g.pass(30 * time.Second)
		if i == 1 {
			g.crash(old[2])
			g.pass(5 * time.Second)
			old[2] = g.join("1")
			g.pass(30 * time.Second)
		}
		g.leave(old[i])
		g.untilGone(old[i])
	}
	t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.settled(2 * time.Hour)
}

// TestS4_AnOldMemberCrashes in the middle of an update, and does not come back: its entries go to
// the new generation up to the share of the members that are left. What is uneven then is evened
// out once.
func TestS4_AnOldMemberCrashes(t *testing.T) {
	g := evenGroup(t, 4, nil)
	old := slices.Clone(g.members)
	for i, p := range old {
		g.join("2")
		g.pass(30 * time.Second)
		if i == 1 {
			g.crash(old[2])
			g.pass(30 * time.Second)
		}
		if i != 2 {
			g.leave(p)
			g.untilGone(p)
		}
	}
	g.pass(time.Minute)
	t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.reset()
	g.pass(20 * time.Minute)
	t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	g.settled(2 * time.Hour)
}

func TestS4_RollbackInTheMiddle(t *testing.T) {
	g := evenGroup(t, 4, nil)
	old := slices.Clone(g.members)
	var fresh []*process
	for _, p := range old[:2] {
		fresh = append(fresh, g.join("2"))
		g.pass(time.Minute)
		g.leave(p)
		g.untilGone(p)
	}
	for _, p := range fresh {
		g.join("1")
		g.pass(time.Minute)
		g.leave(p)
		g.untilGone(p)
	}
	t.Logf("owned: %v", g.owned())
	atMost(t, "moves", g.moves, slot.Count)
	atMost(t, "moves of one slot", slices.Max(g.moved), 2)
	atMost(t, "above the share, in slots", g.over/100, 1)
	g.settled(2 * time.Hour)
}

// TestS4_PausedCanaryAndNodeDrain drains a node a while after one of four members was replaced, and
// again an hour later. The member that joins in place of the drained one has its share at the
// latest half an hour after that; then nothing moves.
func TestS4_PausedCanaryAndNodeDrain(t *testing.T) {
	for _, paused := range []time.Duration{5 * time.Minute, time.Hour} {
		for _, joinsFirst := range []bool{true, false} {
			t.Run(fmt.Sprint(paused, joinsFirst), func(t *testing.T) {
				g := evenGroup(t, 4, nil)
				old := slices.Clone(g.members)
				g.join("2")
				g.pass(time.Minute)
				g.leave(old[0])
				g.untilGone(old[0])
				g.pass(paused)
				g.reset()
				if joinsFirst {
					g.join("1")
					g.pass(30 * time.Second)
				}
				g.leave(old[1])
				g.untilGone(old[1])
				if !joinsFirst {
					g.pass(10 * time.Second)
					g.join("1")
				}
				g.pass(40 * time.Minute)
				t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
				most := 128 // the leaver's slots, and the share of the new member
				if joinsFirst {
					most = 130
				}
				atMost(t, "moves", g.moves, most)
				if n := g.members[len(g.members)-1].owned; n < 40 {
					t.Errorf("the member in place of the drained one owns %d", n)
				}
				atMost(t, "above the share, in slots", g.over/100, 1)
				g.settled(2 * time.Hour)
			})
		}
	}
}
