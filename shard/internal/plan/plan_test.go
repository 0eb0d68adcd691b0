package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/seeds"
	"github.com/tidings-go/tidings/shard/internal/protocol"
)

var plans = seeds.New("plan", "TestS1_ThePlanSettlesWithinATolerance", 40)

// group is a group whose hand-overs take no time.
type group struct {
	*testing.T
	Input
	random *rand.Rand
	clock  int // the number of joins, as a clock
	moved  []int
}

func newGroup(t *testing.T, seed uint64) *group {
	g := &group{T: t, random: rand.New(rand.NewPCG(seed, 0)), moved: make([]int, 256)}
	g.Entries, g.Loads = make([]protocol.Entry, 256), map[int]float64{}
	return g
}

func (g *group) join(id, generation string) {
	g.clock++
	g.Members = append(g.Members, Member{
		ID: protocol.ID(id), Generation: generation, Joined: time.Unix(int64(g.clock), 0),
	})
}

// give makes a member the owner of an entry.
func (g *group) give(i int, to protocol.ID) {
	e := &g.Entries[i]
	if e.Owner != "" {
		g.moved[i]++
	}
	*e = protocol.Entry{Owner: to, Epoch: e.Epoch + 1}
}

// inherit gives away the entries without an owner, or with an owner that is not a member.
func (g *group) inherit() {
	for i, to := range g.Heirs(g.isGone) {
		g.give(i, to)
	}
}

func (g *group) isGone(id protocol.ID) bool {
	return !slices.ContainsFunc(g.Members, func(m Member) bool { return m.ID == id })
}

// settle carries out moves until no move is planned. It returns their number.
func (g *group) settle() (n int) {
	g.Helper()
	for rounds := 0; ; rounds++ {
		g.checkOrder()
		moves := g.Moves()
		if len(moves) == 0 {
			return n
		}
		for _, m := range moves {
			g.give(m.Entry, m.To)
		}
		if n += len(moves); rounds > 1000 {
			g.Fatalf("the plan does not settle: %d moves", n)
		}
	}
}

// checkOrder checks that the plan does not depend on the order of the members.
func (g *group) checkOrder() {
	g.Helper()
	other := g.Input
	other.Members = slices.Clone(other.Members)
	g.random.Shuffle(len(other.Members), func(i, j int) {
		other.Members[i], other.Members[j] = other.Members[j], other.Members[i]
	})
	if a, b := g.Moves(), other.Moves(); !reflect.DeepEqual(a, b) {
		g.Fatalf("the order of members changes the plan: %v and %v", a, b)
	}
}

func (g *group) leave(id string) {
	for i := range g.Members {
		g.Members[i].Leaving = g.Members[i].Leaving || g.Members[i].ID == protocol.ID(id)
	}
}

func (g *group) remove(id string) {
	g.Members = slices.DeleteFunc(g.Members, func(m Member) bool { return m.ID == protocol.ID(id) })
}

// owned returns the number of entries by member.
func (g *group) owned() map[protocol.ID]int {
	owned := map[protocol.ID]int{}
	for _, e := range g.Entries {
		owned[e.Owner]++
	}
	return owned
}

func TestS1_ThePlanSettlesWithinATolerance(t *testing.T) {
	for seed := range plans.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGroup(t, seed)
			for i := range g.Entries {
				g.Loads[i] = g.random.Float64() * 100
			}
			n := 2 + g.random.IntN(10)
			for i := range n {
				g.join(fmt.Sprintf("m%02d", i), "1")
				if g.random.IntN(2) == 0 {
					g.inherit()
				}
			}
			g.inherit()
			g.Uneven = Patience
			before := g.settle()
			if g.IsUneven() {
				t.Error("a settled plan is uneven")
			}
			b := g.board()
			mean := meanOf(b.members)
			most := slices.MaxFunc(b.members, byWeight).weight / mean
			if least := b.lightest(0).weight / mean; most > 1.21 || least < 0.79 {
				t.Errorf("%d members have between %.2f and %.2f of the mean", n, least, most)
			}
			if most := slices.Max(g.moved); before > 256 || most > 2 {
				t.Errorf("%d moves, %d of one entry", before, most)
			}
			if moves := g.noise(); moves > 4 {
				t.Errorf("noise moves %d entries in an hour", moves)
			}
		})
	}
}

// noise changes loads by a tenth for an hour. It returns the number of moves.
func (g *group) noise() (moves int) {
	loads := g.Loads
	clear(g.moved)
	g.Uneven = 0
	for range 360 {
		g.Loads = maps.Clone(loads)
		for i := range g.Loads {
			g.Loads[i] *= 0.9 + 0.2*g.random.Float64()
		}
		if g.Uneven += 10 * time.Second; !g.IsUneven() {
			g.Uneven = 0
		}
		for _, m := range g.Moves() {
			g.give(m.Entry, m.To)
			moves++
		}
	}
	g.Loads = loads
	return moves
}

// TestS1_MembersThatJoinGetTheirEntriesAtOnce has four members that join at a time. A member that
// joins later gets no entry that is moving to another one.
func TestS1_MembersThatJoinGetTheirEntriesAtOnce(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	for i := range 4 {
		g.join(fmt.Sprintf("b%d", i), "1")
	}
	g.begin(g.Moves())
	for _, m := range g.Members[1:] {
		if n := g.coming(m.ID); n < 25 || n > 26 { // half of a share
			t.Errorf("%d entries go to %s", n, m.ID)
		}
	}
	if more := g.Moves(); len(more) != 0 {
		t.Errorf("%d more moves begin", len(more))
	}
	before := slices.Clone(g.Entries)
	g.join("c", "1")
	g.begin(g.Moves())
	for i, e := range before {
		if e.Next != "" && g.Entries[i].Next != e.Next {
			t.Errorf("entry %d was on its way to %s and goes to %s", i, e.Next, g.Entries[i].Next)
		}
	}
	if n := g.coming("c"); n < 21 || n > 22 {
		t.Errorf("%d entries go to c", n)
	}
}

// begin begins moves.
func (g *group) begin(moves []protocol.Move) {
	for _, m := range moves {
		g.Entries[m.Entry].Next = m.To
	}
}

// coming returns the number of entries that are moving to a member.
func (g *group) coming(id protocol.ID) (n int) {
	for _, e := range g.Entries {
		if e.Next == id {
			n++
		}
	}
	return n
}

func TestS1_LoadMovesAfterMinutes(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	g.inherit()
	if g.IsUneven() || len(g.Moves()) != 0 {
		t.Fatal("equal loads are uneven")
	}
	for i, e := range g.Entries {
		if g.Loads[i] = 1; e.Owner == "a" {
			g.Loads[i] = 2
		}
	}
	if !g.IsUneven() || len(g.Moves()) != 0 {
		t.Error("twice the load moves at once, or does not count")
	}
	g.Uneven = Patience
	if n := g.settle(); n < 5 || n > 10 {
		t.Errorf("%d moves", n)
	}
}

// TestS1_UnknownLoadsMoveNothing has a member that reports its loads, and another one that has
// not done so yet.
func TestS1_UnknownLoadsMoveNothing(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	g.inherit()
	for i, e := range g.Entries {
		if e.Owner == "a" {
			g.Loads[i] = 10
		}
	}
	g.Uneven = Patience
	if moves := g.Moves(); g.IsUneven() || len(moves) != 0 {
		t.Errorf("the moves are %v", moves)
	}
}

func TestS1_AMoveThatFailedIsNotTriedAgainAtOnce(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	g.join("b", "1")
	first := g.Moves()
	g.Avoid = func(m protocol.Move) bool { return slices.Contains(first, m) }
	again := g.Moves()
	if len(again) != len(first) || slices.ContainsFunc(again, func(m protocol.Move) bool { return slices.Contains(first, m) }) {
		t.Errorf("after %v the moves are %v", first, again)
	}
}

// TestS1_TheEntriesOfACrashedMemberAlone move when it crashes.
func TestS1_TheEntriesOfACrashedMemberAlone(t *testing.T) {
	g := newGroup(t, 1)
	for _, id := range []string{"a", "b", "c", "d"} {
		g.join(id, "1")
	}
	g.inherit()
	before := slices.Clone(g.Entries)
	g.remove("b")
	g.inherit()
	for i, e := range before {
		if now := g.Entries[i]; now.Owner == "b" || e.Owner != "b" && !reflect.DeepEqual(now, e) {
			t.Errorf("entry %d went from %v to %v", i, e, now)
		}
	}
	for id, n := range g.owned() {
		if n < 85 || n > 86 {
			t.Errorf("%s owns %d", id, n)
		}
	}
}

// TestS1_NothingElseMovesAfterACrash has two members whose shares differ, and are equal once they
// have the entries of the third one.
func TestS1_NothingElseMovesAfterACrash(t *testing.T) {
	g := newGroup(t, 1)
	for id, n := range map[string]int{"a": 149, "b": 64, "c": 43} {
		g.join(id, "1")
		for range n {
			g.give(slices.IndexFunc(g.Entries, func(e protocol.Entry) bool { return e.Owner == "" }), protocol.ID(id))
		}
	}
	g.remove("a")
	if moves := g.Moves(); len(moves) > 0 {
		t.Errorf("before the entries have heirs, others move: %v", moves)
	}
	g.inherit()
	if moves := g.Moves(); len(moves) > 0 || g.owned()["b"] != g.owned()["c"] {
		t.Errorf("members own %v, and more moves: %v", g.owned(), moves)
	}
}

func TestS4_WithSurgeEachEntryMovesOnce(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		g := newGroup(t, 1)
		for i := range n {
			g.join(fmt.Sprintf("old%d", i), "1")
		}
		g.inherit()
		for i := range n {
			g.join(fmt.Sprintf("new%d", i), "2")
			if moves := g.Moves(); len(moves) != 0 {
				t.Errorf("%d replicas: a join moves %v", n, moves)
			}
			g.leave(fmt.Sprintf("old%d", i))
			g.settle()
			g.remove(fmt.Sprintf("old%d", i))
		}
		g.Uneven = Patience
		g.settle()
		if slices.Max(g.moved) != 1 || slices.Min(g.moved) != 1 {
			t.Errorf("%d replicas: %v moves per entry", n, g.moved)
		}
	}
}

func TestS4_WithoutSurgeEachEntryMovesAtMostTwice(t *testing.T) {
	for _, n := range []int{2, 3, 4, 8} {
		g := newGroup(t, 1)
		for i := range n {
			g.join(fmt.Sprintf("old%d", i), "1")
		}
		g.inherit()
		for i := range n {
			g.leave(fmt.Sprintf("old%d", i))
			g.settle()
			g.remove(fmt.Sprintf("old%d", i))
			g.join(fmt.Sprintf("new%d", i), "2")
			g.settle()
		}
		g.Uneven = Patience
		g.settle()
		if most := slices.Max(g.moved); most > 2 {
			t.Errorf("%d replicas: an entry moved %d times", n, most)
		}
		if g.IsUneven() {
			t.Errorf("%d replicas own %v", n, g.owned())
		}
	}
}

func TestS4_ACrashDuringAnUpdateGoesToTheNewGeneration(t *testing.T) {
	g := newGroup(t, 1)
	g.join("old0", "1")
	g.join("old1", "1")
	g.inherit()
	g.join("new0", "2")
	g.remove("old0")
	g.inherit()
	if owned := g.owned(); owned["new0"] != 128 || owned["old1"] != 128 {
		t.Errorf("the members own %v", owned)
	}
}

func TestS1_NobodyInheritsFromLeaversAlone(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	g.leave("a")
	if moves, heirs := g.Moves(), g.Heirs(func(protocol.ID) bool { return true }); len(moves) != 0 || len(heirs) != 0 {
		t.Errorf("moves %v, heirs %v", moves, heirs)
	}
}
