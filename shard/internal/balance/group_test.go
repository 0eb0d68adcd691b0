package balance

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/slot"
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

// TestS1_OneRebalancingAtATime: a member that joins while another one fills its caches waits for it.
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

// TestS1_WhoTakesIsCompared: of the members that take, those that lack the fewest controllers inherit.
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
