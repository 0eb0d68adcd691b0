package balance

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// core is a group of members that follow plan and protocol, with a map in the place of the server,
// in virtual time. Members see the map a tick late, so that writes meet conflicts.
type core struct {
	*testing.T
	now     time.Time
	version uint64
	entries []handover.Entry
	seen    []handover.Entry // as of the last tick
	seenAt  uint64
	nodes   []*node
	random  *rand.Rand

	active            time.Time // the last write, or the begin of pass
	accepted          time.Time // the last write
	writes, conflicts int
	moves             int
	closed            []time.Time     // since when no calls may begin for an entry
	longest           []time.Duration // the longest time of that
}

const tick = 250 * time.Millisecond

// node is a member of a core.
type node struct {
	m          handover.Member
	s          State
	plan       Plan
	planned    Table // of the plan
	conduct    handover.Conduct
	refusals   handover.Refusals
	generation string
	created    time.Time
	lists      time.Duration // the time of a list
	fills      map[int]time.Time
	calls      map[int]*call
	facts      handover.Facts
	refused    bool // the server refuses its writes
	fails      bool // its lists fail
	leaves     time.Time
	crashed    time.Time
	gone       bool
	opened     map[int]bool
}

// call is the call of an entry that runs.
type call struct{ began, ends time.Time }

func newCore(t *testing.T) *core {
	return &core{T: t, now: time.Unix(1e9, 0), entries: make([]handover.Entry, slot.Count), version: 1,
		closed: make([]time.Time, slot.Count), longest: make([]time.Duration, slot.Count), random: rand.New(rand.NewPCG(1, 2))}
}

func (c *core) join(generation string, lists time.Duration) *node {
	n := &node{generation: generation, created: c.now, lists: lists, fills: map[int]time.Time{}, calls: map[int]*call{}, opened: map[int]bool{}}
	n.m.Self = handover.ID(fmt.Sprintf("m%d", len(c.nodes)))
	n.facts = handover.Facts{Started: true, Least: -1}
	c.nodes = append(c.nodes, n)
	return n
}

// coreOf returns n members that have shared the slots for ten minutes.
func coreOf(t *testing.T, n int, lists time.Duration) *core {
	c := newCore(t)
	for range n {
		c.join("1", lists)
	}
	c.pass(10 * time.Minute)
	c.reset()
	return c
}

func (c *core) reset() {
	c.writes, c.moves = 0, 0
	clear(c.longest)
}

// pass makes time pass, in longer steps once nothing has happened for a while.
func (c *core) pass(d time.Duration) {
	c.active = c.now
	for end := c.now.Add(d); c.now.Before(end); {
		step := tick
		if c.now.Sub(c.active) > 30*time.Second {
			step = 5 * time.Second
		}
		c.now = c.now.Add(step)
		c.seen, c.seenAt = c.entries, c.version
		for _, n := range c.nodes {
			if n.crashed.IsZero() && !n.gone {
				c.turn(n)
			}
		}
		c.check()
	}
}

// peers returns the members as all of them see them.
func (c *core) peers() (peers map[handover.ID]handover.Peer, table Table) {
	peers = map[handover.ID]handover.Peer{}
	for _, n := range c.nodes {
		p := handover.Peer{Standing: handover.Live, State: n.conduct.State(), Joined: true, Created: n.created,
			Refused: n.refusals.Says(c.now)}
		switch silent := c.now.Sub(n.crashed); {
		case n.gone || !n.crashed.IsZero() && silent >= 15*time.Second:
			p.Standing = handover.Ended
		case !n.crashed.IsZero() && silent >= 10*time.Second:
			p.Standing = handover.Held
		}
		peers[n.m.Self] = p
		if p.Standing != handover.Ended {
			table.Members = append(table.Members, Member{ID: n.m.Self, Peer: p, Generation: n.generation, Lacks: n.facts.Lacks})
		}
	}
	return peers, table
}

// turn is what the loop of a member does: see, report, try, act, plan, write.
func (c *core) turn(n *node) {
	if lost, _ := n.m.See(c.seenAt, c.seen); len(lost) > 0 {
		c.Fatalf("%s loses %v", n.m.Self, lost)
	}
	for i, at := range n.fills {
		switch {
		case c.now.Before(at):
			continue
		case n.fails:
			n.m.Failed(i)
			n.facts.Failed++
		default:
			n.m.Filled(i)
			n.facts.Filled++
		}
		delete(n.fills, i)
	}
	n.facts.Least, n.facts.Unfilled = -1, false
	for _, other := range c.nodes {
		isOther := other != n && other.crashed.IsZero() && !other.gone && other.leaves.IsZero()
		if isOther && (n.facts.Least < 0 || other.facts.Lacks < n.facts.Least) {
			n.facts.Least = other.facts.Lacks
		}
	}
	for i := range n.m.Entries() {
		n.facts.Unfilled = n.facts.Unfilled || n.fails && n.m.Phase(i) == handover.Filling
	}
	maps.DeleteFunc(n.calls, func(_ int, call *call) bool { return !c.now.Before(call.ends) })
	n.facts.Leaving = !n.leaves.IsZero()
	n.conduct = n.conduct.Next(c.now, n.facts)
	gives := n.conduct.State() == handover.Gives || n.conduct.State() == handover.Leaving
	n.m.Final = n.facts.Leaving && handover.StageOf(n.leaves, 75*time.Second, c.now, true) != handover.Handing
	for range 2 { // what Shut leads to is seen at once
		for i := range n.m.Entries() {
			if !n.refusals.Pending() {
				n.m.Try(i, c.now, n.callsOf(i), gives)
			}
		}
		c.act(n)
	}
	peers, table := c.peers()
	table.Entries = n.m.Entries()
	plan := n.plan
	if isNew := !c.now.Before(plan.Until) || !reflect.DeepEqual(table, n.planned); isNew {
		n.s, plan = n.s.Next(table, c.now)
		n.plan, n.planned = plan, table
	}
	v := handover.View{Peers: peers, Planner: handover.Planner(peers), Moves: plan.Moves, Tidy: c.now.Sub(c.active) > 20*time.Second,
		Weight: func(int) uint32 { return handover.Weigh(99) }, Renew: n.refusals.Probes(c.now)}
	if entries, changed := n.m.Next(v); changed {
		c.write(n, entries)
	}
	c.leave(n)
	owns := slices.ContainsFunc(c.entries, func(e handover.Entry) bool { return e.Owner == n.m.Self })
	if n.refusals.End(c.now, owns, false, c.accepted) != nil {
		n.gone = true
		c.join(n.generation, n.lists).refused = true
	}
}

func (n *node) callsOf(i int) handover.Calls {
	calls := handover.Calls{Opened: n.opened[i], Known: true, Versions: map[string]string{"pods": "7"}}
	if call := n.calls[i]; call != nil {
		calls.Running, calls.Oldest = 1, call.began
	}
	return calls
}

func (c *core) act(n *node) {
	for _, a := range n.m.Acts() {
		switch a.Act {
		case handover.Fill:
			n.fills[a.Entry] = c.now.Add(n.lists)
		case handover.Serve:
			n.m.Opened(a.Entry, n.m.Entries()[a.Entry].Epoch)
			n.opened[a.Entry] = true
		case handover.Drop:
			delete(n.fills, a.Entry)
			delete(n.opened, a.Entry)
		}
	}
}

func (c *core) write(n *node, entries []handover.Entry) {
	switch {
	case n.refused:
		n.refusals = n.refusals.Refused(c.now)
	case c.version != n.m.Version():
		c.conflicts++
	default:
		for i, e := range entries {
			if old := c.entries[i].Owner; e.Owner != old && old == n.m.Self {
				c.moves++
			}
		}
		c.entries, c.version = entries, c.version+1
		c.writes++
		c.active, c.accepted = c.now, c.now
		n.m.See(c.version, entries)
		c.act(n)
		n.refusals = n.refusals.Accepted()
	}
}

// leave ends a member that leaves and owns nothing, or whose grace is over.
func (c *core) leave(n *node) {
	if n.leaves.IsZero() {
		return
	}
	owns := slices.ContainsFunc(c.entries, func(e handover.Entry) bool { return e.Owner == n.m.Self })
	n.gone = !owns || handover.StageOf(n.leaves, 75*time.Second, c.now, true) == handover.Over
}

// check asserts that at most one member calls for an entry, and measures the time in which none
// does.
func (c *core) check() {
	opens := make([]int, len(c.entries))
	for _, n := range c.nodes {
		if n.crashed.IsZero() && !n.gone && n.m.Version() > 0 {
			for i := range opens {
				if phase := n.m.Phase(i); phase.Calls() {
					if c.entries[i].Owner != n.m.Self {
						c.Fatalf("%s calls for %d of %s", n.m.Self, i, c.entries[i].Owner)
					}
					if phase == handover.Open {
						opens[i]++
					}
				}
			}
		}
	}
	for i, n := range opens {
		switch {
		case n > 0:
			c.closed[i] = time.Time{}
		case c.closed[i].IsZero():
			c.closed[i] = c.now
		}
		if n == 0 {
			c.longest[i] = max(c.longest[i], c.now.Sub(c.closed[i])+tick)
		}
	}
}

func (c *core) owned() (numbers []int) {
	for _, n := range c.nodes {
		owned := 0
		for _, e := range c.entries {
			if e.Owner == n.m.Self {
				owned++
			}
		}
		numbers = append(numbers, owned)
	}
	return numbers
}

// expect asserts moves and gaps.
func (c *core) expect(moves int, gap time.Duration) {
	c.Helper()
	longest := slices.Max(c.longest)
	c.Logf("owned: %v; %d moves, %d writes, %d conflicts; longest time without calls %v", c.owned(), c.moves, c.writes, c.conflicts, longest)
	if c.moves > moves || longest > gap {
		c.Errorf("%d moves and %v without calls, want at most %d and %v", c.moves, longest, moves, gap)
	}
	for i, e := range c.entries {
		if e.Left == handover.Known {
			c.Fatalf("the map keeps versions of %d", i)
		}
	}
}
