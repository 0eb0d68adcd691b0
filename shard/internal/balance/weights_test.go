package balance

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

func TestS1_BurstsOfObjects(t *testing.T) {
	for _, burst := range []int{1000, 10_000, 100_000} {
		g := newGroup(t, slot.Count)
		isBurst := false
		g.objects = func(i int) int {
			if isBurst && i == 3 {
				return burst
			}
			return 99
		}
		for range 4 {
			g.join("1")
		}
		g.pass(time.Hour)
		g.reset()
		for range 18 { // five of every ten minutes
			isBurst = true
			g.pass(5 * time.Minute)
			isBurst = false
			g.pass(5 * time.Minute)
		}
		atMost(t, fmt.Sprint("moves in three hours with bursts of ", burst), g.moves, 0)
	}
}

// TestS1_AlternatingBursts: two namespaces of two members have their bursts in turn, so that some
// member is always off the share.
func TestS1_AlternatingBursts(t *testing.T) {
	g := evenGroup(t, 4, nil)
	first, second := 0, slices.IndexFunc(g.entries, func(e handover.Entry) bool { return e.Owner != g.entries[0].Owner })
	turn := first
	g.objects = func(i int) int {
		if i == turn {
			return 4999
		}
		return 99
	}
	for range 18 {
		turn = first
		g.pass(5 * time.Minute)
		turn = second
		g.pass(5 * time.Minute)
	}
	atMost(t, "moves in three hours", g.moves, 0)
}

func TestS1_GrowthMovesOnce(t *testing.T) {
	g := evenGroup(t, 4, nil)
	owner := g.entries[0].Owner
	grown := map[int]bool{}
	for i, e := range g.entries {
		grown[i] = e.Owner == owner
	}
	g.objects = func(i int) int {
		if grown[i] {
			return 199
		}
		return 99
	}
	g.pass(9 * time.Minute)
	atMost(t, "moves in nine minutes", g.moves, 0)
	g.pass(2 * time.Minute)
	if g.moves == 0 {
		t.Error("nothing moves")
	}
	atMost(t, "moves", g.moves, 24)
	g.settled(3 * time.Hour)
}

func TestS1_CallsThatHang(t *testing.T) {
	g := evenGroup(t, 4, nil)
	p := g.members[1]
	p.State = handover.Gives
	g.pass(time.Minute)
	atMost(t, "moves", g.moves, 64)
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	atMost(t, "left", p.owned, 0)
	g.settled(time.Hour)
}

func TestS1_ATypeThatFailsOnAll(t *testing.T) {
	g := evenGroup(t, 4, nil)
	for i, p := range g.members { // one after the other notices it
		p.Lacks = 1
		g.pass(time.Duration(i) * time.Second)
	}
	g.pass(time.Hour)
	atMost(t, "moves", g.moves, 0)
	for _, p := range g.members {
		p.State = handover.Gives
	}
	g.settled(time.Hour)
}

func TestS1_ATypeThatFailsOnOne(t *testing.T) {
	g := evenGroup(t, 4, nil)
	p := g.members[2]
	p.Lacks = 1
	g.pass(2 * time.Minute)
	atMost(t, "moves in two minutes", g.moves, 0)
	p.State = handover.Gives // by its conduct
	g.pass(time.Minute)
	atMost(t, "moves", g.moves, 64)
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	g.settled(time.Hour)
}

// TestS1_WhoTakesIsCompared: of the members that take, those that lack the fewest controllers
// inherit.
func TestS1_WhoTakesIsCompared(t *testing.T) {
	g := evenGroup(t, 4, nil)
	lacks := g.members[0]
	lacks.Lacks = 1
	g.crash(g.members[3])
	g.pass(time.Minute)
	atMost(t, "entries of the one that lacks a controller", lacks.owned, 64)
	for _, p := range g.members {
		p.Lacks = 1
	}
	g.crash(g.members[2])
	g.pass(time.Minute)
	t.Logf("owned: %v", g.owned())
	if lacks.owned <= 64 {
		t.Errorf("it owns %d, and all lack as many", lacks.owned)
	}
}

func TestS1_ColdStart(t *testing.T) {
	for _, apart := range []time.Duration{0, 3 * time.Second} {
		for _, late := range []time.Duration{0, 10 * time.Second} {
			t.Run(fmt.Sprint(apart, late), func(t *testing.T) {
				g := newGroup(t, slot.Count)
				for i := range 8 {
					p := g.join("1")
					if i >= 2 {
						p.starts = p.starts.Add(late)
					}
					g.pass(apart)
				}
				g.pass(10 * time.Minute)
				t.Logf("owned: %v, moves: %d", g.owned(), g.moves)
				atMost(t, "most that one ever holds", g.highest, 64)
				for i, e := range g.entries {
					if e.Owner == "" {
						t.Fatalf("%d has no owner", i)
					}
				}
				atMost(t, "moves", g.moves, 0)
			})
		}
	}
}

// TestS1_NobodyTakes: entries without an owner have one a minute after their owner has crashed,
// even if the only other member declines.
func TestS1_NobodyTakes(t *testing.T) {
	g := evenGroup(t, 2, nil)
	g.members[0].State = handover.Declines
	g.crash(g.members[1])
	g.pass(time.Minute)
	for i, e := range g.entries {
		if e.Owner != g.members[0].ID {
			t.Fatalf("%d is owned by %s", i, e.Owner)
		}
	}
}

// TestS1_AReceiverThatCrashes is a member whose memory is too small: it crashes each time that it
// has got its slots, and comes back after ten seconds. It gets slots every five minutes.
func TestS1_AReceiverThatCrashes(t *testing.T) {
	g := evenGroup(t, 4, nil)
	p := g.join("1")
	crashes, held := 0, 0
	for range 360 {
		g.pass(10 * time.Second)
		if p.owned > 0 && p.ends.IsZero() {
			crashes, held = crashes+1, held+p.owned
			g.crash(p)
			g.pass(10 * time.Second)
			p = g.join("1")
		}
	}
	t.Logf("%d slots were with it when it crashed", held)
	atMost(t, "crashes in an hour", crashes, 13)
	atMost(t, "moves in an hour", g.moves, 13*52)
}
