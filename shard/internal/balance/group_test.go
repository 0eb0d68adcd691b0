package balance

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// group is a group of members in virtual time.
type group struct {
	*testing.T
	now     time.Time
	made    bool // there is a map
	first   time.Time
	last    time.Time // of the last join
	entries []handover.Entry
	ready   []time.Time // the time at which the next owner of an entry takes over
	objects func(entry int) int
	members []*process // those that have not ended
	state   State
	lists   time.Duration // the time for which an heir fills its caches
	moves   int           // changes of an owner that had not ended
	moved   []int
	highest int     // the most entries that a member ever owned
	over    float64 // the most that a member ever had above its share, in weights
}

// process is a member of the group.
type process struct {
	Member
	starts time.Time // when it takes
	ends   time.Time // when others find that it has crashed; zero while it lives
	owned  int
}

func newGroup(t *testing.T, entries int) *group {
	return &group{
		T: t, now: time.Unix(1e9, 0), entries: make([]handover.Entry, entries), ready: make([]time.Time, entries),
		moved: make([]int, entries), objects: func(int) int { return 99 }, lists: 2 * time.Second,
	}
}

// evenGroup returns a group of n members of generation "1" that have been together for an hour.
func evenGroup(t *testing.T, n int, objects func(int) int) *group {
	g := newGroup(t, slot.Count)
	if objects != nil {
		g.objects = objects
	}
	for range n {
		g.join("1")
	}
	g.pass(time.Hour)
	g.reset()
	return g
}

// reset begins to count anew.
func (g *group) reset() {
	g.moves, g.highest, g.over = 0, 0, 0
	clear(g.moved)
}

func (g *group) join(generation string) *process {
	p := &process{starts: g.now.Add(time.Second)}
	p.ID = handover.ID(fmt.Sprintf("m%02d-%d", len(g.members), g.now.Unix()-1e9))
	p.Generation, p.Standing, p.State, p.Created = generation, handover.Live, handover.Starting, g.now
	p.Joined = true
	if g.last = g.now; len(g.members) == 0 {
		g.first = g.now
	}
	g.members = append(g.members, p)
	return p
}

func (g *group) leave(p *process) { p.State = handover.Leaving }

func (g *group) crash(p *process) {
	p.ends = g.now.Add(16 * time.Second)
	g.highest = max(g.highest, p.owned)
}

func (g *group) find(id handover.ID) *process {
	for _, p := range g.members {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// pass makes time pass: in steps of a second for two minutes, then of five.
func (g *group) pass(d time.Duration) {
	for passed := time.Duration(0); passed < d; {
		step := time.Second
		if passed >= 2*time.Minute {
			step = min(5*time.Second, d-passed)
		}
		passed += step
		g.now = g.now.Add(step)
		g.step()
	}
}

// untilGone makes time pass until a member that leaves has ended.
func (g *group) untilGone(p *process) {
	g.Helper()
	for range 60 {
		if g.find(p.ID) == nil {
			return
		}
		g.pass(time.Second)
	}
	g.Errorf("%s does not end: it owns %d", p.ID, p.owned)
}

func (g *group) table() Table {
	t := Table{Entries: slices.Clone(g.entries)}
	for _, p := range g.members {
		t.Members = append(t.Members, p.Member)
	}
	return t
}

func (g *group) step() {
	for _, p := range slices.Clone(g.members) {
		switch {
		case !p.ends.IsZero() && !g.now.Before(p.ends), p.State == handover.Leaving && p.owned == 0 && p.ends.IsZero():
			g.members = slices.DeleteFunc(g.members, func(o *process) bool { return o == p })
		case !p.ends.IsZero():
			p.Standing = handover.Held
		case p.State == handover.Starting && !g.now.Before(p.starts):
			p.State = handover.Takes
		}
	}
	g.made = g.made || len(g.members) > 0 && handover.MayMake(g.now, g.first, g.last)
	for i := range g.entries {
		e := &g.entries[i]
		next := g.find(e.Next)
		switch {
		case e.Next == "":
		case next == nil || next.Standing != handover.Live || next.State != handover.Takes:
			e.Next = ""
		case !g.now.Before(g.ready[i]) && g.find(e.Owner) != nil && g.find(e.Owner).Standing == handover.Live:
			e.Owner, e.Next, e.Epoch = e.Next, "", e.Epoch+1
			g.moves++
			g.moved[i]++
		}
		if e.Owner != "" {
			e.Weight = handover.Weigh(g.objects(i))
		}
	}
	if !g.made {
		return
	}
	state, plan := g.state.Next(g.table(), g.now)
	g.state = state
	for _, m := range plan.Moves {
		e := &g.entries[m.Entry]
		if g.find(e.Owner) == nil {
			e.Owner, e.Next, e.Epoch = m.To, "", e.Epoch+1
			continue
		}
		if e.Next != "" || e.Owner == m.To {
			g.Fatalf("a move of the entry %d, which is %+v", m.Entry, *e)
		}
		e.Next, g.ready[m.Entry] = m.To, g.now.Add(g.lists)
	}
	g.measure(plan)
}

// measure counts what members own. A member that gets nothing may be above the share: of a group
// that grows, all are.
func (g *group) measure(plan Plan) {
	gets := map[handover.ID]bool{}
	for _, m := range plan.Moves {
		gets[m.To] = true
	}
	for _, p := range g.members {
		n, weight := 0, 0.0
		for _, e := range g.entries {
			if e.Owner == p.ID {
				n++
			}
			if holder := g.find(e.Next); e.Next == p.ID || holder == nil && e.Owner == p.ID {
				weight += float64(e.Weight)
			}
		}
		p.owned, g.highest = n, max(g.highest, n)
		if gets[p.ID] {
			g.over = max(g.over, weight-plan.Share)
		}
	}
}

// owned returns the numbers of entries that the members own.
func (g *group) owned() (numbers []int) {
	for _, p := range g.members {
		numbers = append(numbers, p.owned)
	}
	return numbers
}

// settled asserts that nothing moves for a while.
func (g *group) settled(d time.Duration) {
	g.Helper()
	before := g.moves
	g.pass(d)
	if g.moves > before {
		g.Errorf("%d moves in %v after", g.moves-before, d)
	}
}

// atMost asserts a bound.
func atMost[T int | float64](t *testing.T, what string, got, most T) {
	t.Helper()
	t.Logf("%s: %v, target at most %v", what, got, most)
	if got > most {
		t.Errorf("%s: %v, want at most %v", what, got, most)
	}
}

func TestS1_AFifthReplicaJoins(t *testing.T) {
	g := evenGroup(t, 4, nil)
	e := g.join("1")
	g.pass(time.Minute)
	t.Logf("owned: %v", g.owned())
	atMost(t, "moves", g.moves, 52)
	most := 0
	for range 60 {
		most = max(most, e.owned)
		g.pass(time.Minute)
	}
	atMost(t, "most that it owns", most, 52)
	atMost(t, "moves of one slot", slices.Max(g.moved), 1)
	g.settled(time.Hour)
	if e.owned < 40 {
		t.Errorf("it owns %d of a share of 51", e.owned)
	}
}

// fewestMoves is the number of moves that bring a newcomer to its share, less a tenth, and leave
// each giver as much: the heaviest entries first.
func fewestMoves(g *group) (moves int) {
	b := newBoard(g.table())
	got, enough := 0.0, b.share*(1-least)
	for _, i := range b.heaviestFirst(func(int) bool { return true }) {
		w, owner := b.weights[i], b.owners[i]
		if w <= b.share && got < enough && owner.weight-w >= enough {
			owner.weight -= w
			got, moves = got+w, moves+1
		}
	}
	return moves
}

func TestS1_AFifthReplicaJoinsUnequalSlots(t *testing.T) {
	for name, objects := range map[string]func(int) int{
		"one namespace of 40 %": func(i int) int {
			if i == 7 {
				return 100*255*2/3 - 1
			}
			return 99
		},
		"twelve heavy slots": func(i int) int {
			if i%20 == 0 && i < 240 {
				return 1999
			}
			return 99
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := evenGroup(t, 4, objects)
			t.Logf("owned before: %v", g.owned())
			e := g.join("1")
			g.pass(2 * time.Second)
			best := fewestMoves(g)
			g.pass(time.Minute)
			t.Logf("owned: %v", g.owned())
			atMost(t, "moves", g.moves, best+2)
			g.settled(2 * time.Hour)
			atMost(t, "moves of one slot", slices.Max(g.moved), 1)
			b := newBoard(g.table())
			for _, m := range b.members {
				t.Logf("%s: %.0f of a share of %.0f", m.ID, m.weight, b.share)
				if len(m.owned) > 1 && math.Abs(m.weight-b.share) > 0.25*b.share {
					t.Errorf("%s has %.0f of a share of %.0f", m.ID, m.weight, b.share)
				}
			}
			if e.owned == 0 {
				t.Error("it owns nothing")
			}
		})
	}
}

// TestS1_OneRebalancingAtATime: a member that joins while another one fills its caches waits for
// it.
func TestS1_OneRebalancingAtATime(t *testing.T) {
	g := evenGroup(t, 4, nil)
	g.lists = 2 * time.Minute
	g.join("1")
	g.pass(30 * time.Second)
	late := g.join("1")
	g.pass(time.Minute)
	for i, e := range g.entries {
		if e.Next == late.ID {
			t.Fatalf("%d is to move to %s", i, late.ID)
		}
	}
	g.pass(5 * time.Minute)
	if late.owned < 20 {
		t.Errorf("it owns %d in the end", late.owned)
	}
}

// TestS1_AnotherPlanner goes on with a rebalancing of which it has not seen the begin.
func TestS1_AnotherPlanner(t *testing.T) {
	g := evenGroup(t, 4, nil)
	g.lists = time.Minute
	e := g.join("1")
	g.pass(20 * time.Second)
	g.state = State{}
	g.pass(10 * time.Second)
	g.state = State{}
	g.pass(2 * time.Minute)
	atMost(t, "moves", g.moves, 52)
	atMost(t, "most that it owns", e.owned, 52)
	g.settled(2 * time.Hour)
}
