package balance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/test/seeds"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

func TestS2_JoinsAndLeaversWithLongLists(t *testing.T) {
	for _, lists := range []time.Duration{0, 40 * time.Second} {
		t.Run(fmt.Sprint(lists), func(t *testing.T) {
			c := coreOf(t, 4, lists)
			c.join("1", lists)
			c.pass(3 * time.Minute)
			c.expect(52, time.Second)
			if n := c.owned()[4]; n < 40 {
				t.Errorf("it owns %d", n)
			}
			c.nodes[1].leaves = c.now
			c.pass(3 * time.Minute)
			c.expect(52+64, time.Second)
		})
	}
}

func TestS3_ACrashAmongFour(t *testing.T) {
	c := coreOf(t, 4, time.Second)
	c.nodes[2].crashed = c.now
	c.pass(3 * time.Minute)
	c.expect(0, 18*time.Second)
}

func TestS3_AnHeirThatCrashesOnceItIsReady(t *testing.T) {
	c := coreOf(t, 4, time.Second)
	c.join("1", time.Second)
	for c.moves == 0 {
		c.pass(tick)
	}
	c.nodes[4].crashed = c.now
	c.pass(3 * time.Minute)
	c.expect(52, 18*time.Second)
}

func TestS4_ARollingUpdate(t *testing.T) {
	c := coreOf(t, 4, 5*time.Second)
	for _, n := range c.nodes[:4] {
		c.join("2", 5*time.Second)
		c.pass(time.Minute)
		n.leaves = c.now
		c.pass(30 * time.Second)
	}
	c.pass(2 * time.Hour)
	c.expect(256, time.Second)
}

// TestS2_ACallOfAQuarterOfAnHour runs in each slot of a member while another one joins.
func TestS2_ACallOfAQuarterOfAnHour(t *testing.T) {
	c := coreOf(t, 2, time.Second)
	for i := range c.entries {
		for _, n := range c.nodes {
			n.calls[i] = &call{c.now, c.now.Add(15 * time.Minute)}
		}
	}
	c.pass(5 * time.Second)
	c.join("1", time.Second)
	c.pass(14 * time.Minute)
	c.expect(0, 0)
	c.pass(5 * time.Minute)
	c.expect(90, time.Second)
	if n := c.owned()[2]; n < 70 {
		t.Errorf("it owns %d", n)
	}
}

// TestS1_AMemberWhoseCallsAllHang gives: its slots move once, those of hung calls stay.
func TestS1_AMemberWhoseCallsAllHang(t *testing.T) {
	c := coreOf(t, 4, time.Second)
	n := c.nodes[1]
	n.facts.Hung = true
	hung := 0
	for i, e := range c.entries {
		if e.Owner == n.m.Self && hung < 4 {
			n.calls[i] = &call{c.now, c.now.Add(100 * time.Hour)}
			hung++
		}
	}
	c.pass(time.Hour)
	c.expect(60, time.Second)
	if owned := c.owned()[1]; owned != 4 {
		t.Errorf("it owns %d", owned)
	}
}

// TestS1_AMemberWhoseWritesAreRefused ends once others can write, and joins anew. It gets nothing
// then, and its slots have no break.
func TestS1_AMemberWhoseWritesAreRefused(t *testing.T) {
	c := coreOf(t, 4, time.Second)
	c.nodes[0].refused = true // it plans
	c.join("1", time.Second)
	c.pass(10 * time.Minute)
	c.expect(52+64, 2*time.Second)
	if owned := c.owned(); owned[0] > 0 || owned[4] < 30 || owned[5] > 0 {
		t.Errorf("owned: %v", owned)
	}
	if len(c.nodes) != 6 {
		t.Errorf("it joins %d times", len(c.nodes)-5)
	}
}

// TestS1_ATypeThatCannotBeListed by one member, or by all of them, one after the other.
func TestS1_ATypeThatCannotBeListed(t *testing.T) {
	t.Run("by one", func(t *testing.T) {
		c := coreOf(t, 4, time.Second)
		c.nodes[1].facts.Lacks = 1
		c.pass(time.Hour)
		c.expect(64, time.Second)
		if owned := c.owned()[1]; owned > 0 {
			t.Errorf("it owns %d", owned)
		}
		c.reset()
		c.nodes[1].facts.Lacks = 0
		c.pass(time.Hour)
		c.expect(64, time.Second) // its share comes back
	})
	t.Run("by all", func(t *testing.T) {
		c := coreOf(t, 4, time.Second)
		for _, n := range c.nodes {
			n.facts.Lacks = 1
			c.pass(20 * time.Second)
		}
		c.pass(2 * time.Hour)
		c.expect(0, 0)
	})
	t.Run("by one that joins", func(t *testing.T) {
		c := coreOf(t, 4, time.Second)
		c.join("1", 5*time.Second).fails = true
		c.pass(2 * time.Hour)
		c.expect(0, 0)
		if c.writes > 16*5 { // it declines for ten minutes at last; each try needs a write of the planner and of each owner
			t.Errorf("%d writes", c.writes)
		}
		c.nodes[4].fails = false
		c.pass(15 * time.Minute)
		c.expect(52, time.Second)
	})
	t.Run("by all, as the group starts", func(t *testing.T) {
		c := newCore(t)
		for range 3 {
			c.join("1", time.Second).fails = true
		}
		c.pass(30 * time.Minute)
		c.expect(0, time.Hour)
		for _, n := range c.nodes {
			n.fails = false
		}
		c.reset()
		c.pass(time.Minute)
		c.reset()
		c.pass(time.Hour)
		c.expect(0, 0)
	})
}

var chaos = seeds.New("balance", "TestS1_ChaosEnds", 2)

// TestS1_ChaosEnds does to a group, in a random order, all that the table of a member has. In the
// quiet after it each entry is covered, nothing is on its way but what a call holds that does not
// end, and nothing moves any more.
func TestS1_ChaosEnds(t *testing.T) {
	for seed := range chaos.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			c := newCore(t)
			c.random = rand.New(rand.NewPCG(seed, 1))
			c.join("1", time.Second)
			c.join("1", time.Second)
			for range 40 {
				c.disturb()
				c.pass(time.Duration(c.random.IntN(40)) * time.Second)
			}
			for _, n := range c.nodes {
				n.fails, n.refused, n.facts.Lacks, n.facts.Hung = false, false, 0, false
				clear(n.calls)
			}
			c.join("2", time.Second)
			c.pass(45 * time.Minute) // two generations count as one, and what gives takes again
			c.reset()
			c.pass(time.Hour)
			c.expect(0, 0)
			for i, e := range c.entries {
				if e.Next != "" {
					t.Errorf("%d is still on its way: %+v", i, e)
				}
			}
		})
	}
}

func (c *core) disturb() {
	live := slices.DeleteFunc(slices.Clone(c.nodes), func(n *node) bool { return n.gone || !n.crashed.IsZero() || !n.leaves.IsZero() })
	if len(live) < 2 || len(live) < 7 && c.random.IntN(3) == 0 {
		c.join(fmt.Sprint(1+c.random.IntN(2)), time.Duration(c.random.IntN(20))*time.Second)
		return
	}
	n := live[c.random.IntN(len(live))]
	switch c.random.IntN(8) {
	case 0:
		n.crashed = c.now
	case 1, 2:
		n.leaves = c.now
	case 3:
		n.fails = !n.fails
	case 4:
		n.facts.Lacks = 1 - n.facts.Lacks
	case 5:
		n.refused = !n.refused
	case 6:
		n.facts.Hung = !n.facts.Hung
	case 7:
		for i, e := range c.entries {
			if e.Owner == n.m.Self && c.random.IntN(2) == 0 {
				n.calls[i] = &call{c.now, c.now.Add(time.Duration(c.random.IntN(100)) * time.Second)}
			}
		}
	}
}

// TestWhatIsOnItsWayIsNoBreak has a member that takes, declines and takes again: another one gets
// its share nevertheless.
func TestWhatIsOnItsWayIsNoBreak(t *testing.T) {
	g := newGroup(t, slot.Count)
	a := g.join("1")
	g.pass(time.Hour)
	g.lists = time.Hour
	b := g.join("1")
	c := g.join("1")
	for range 8 {
		g.pass(time.Minute)
		b.State = handover.Declines
		g.lists = 2 * time.Second
		g.pass(9 * time.Minute)
		b.State = handover.Takes
		g.lists = time.Hour
	}
	if a.owned > 150 || c.owned < 100 {
		t.Errorf("a has %d and c %d of %d entries", a.owned, c.owned, slot.Count)
	}
}

// TestAColdStartWaitsUntilAllHaveSeenTheMap, for a second at most. Then the others get everything.
func TestAColdStartWaitsUntilAllHaveSeenTheMap(t *testing.T) {
	table := Table{Entries: make([]handover.Entry, slot.Count)}
	for i := range 4 {
		table.Members = append(table.Members, Member{ID: handover.ID(fmt.Sprint(i)), Generation: "1",
			Peer: handover.Peer{Standing: handover.Live, State: handover.Takes, Joined: i < 3}})
	}
	now := time.Unix(1e9, 0)
	s, plan := State{}.Next(table, now)
	if len(plan.Moves) > 0 {
		t.Errorf("%d entries are given away at once", len(plan.Moves))
	}
	if _, plan := s.Next(table, now.Add(seesFor)); len(plan.Moves) < slot.Count {
		t.Errorf("%d entries are given away after %v", len(plan.Moves), seesFor)
	}
	table.Members[3].Joined = true
	if _, plan := s.Next(table, now.Add(time.Millisecond)); len(plan.Moves) != slot.Count {
		t.Errorf("%d entries are given away once all have seen the map", len(plan.Moves))
	}
}
