package plan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// TestS1_LoadsOfAllSizesSettle has slots of which one may have more load than all others. Some members get
// no entries, as moves to them fail.
func TestS1_LoadsOfAllSizesSettle(t *testing.T) {
	for seed := range plans.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGroup(t, seed)
			for i := range g.Entries {
				g.Loads[i] = math.Exp(g.random.NormFloat64() * 4)
			}
			n, failing := 2+g.random.IntN(10), map[protocol.ID]bool{}
			for i := range n {
				id := fmt.Sprintf("m%02d", i)
				g.join(id, "1")
				if g.random.IntN(2) == 0 {
					g.inherit()
				}
				failing[protocol.ID(id)] = g.random.IntN(3) == 0
			}
			g.inherit()
			g.Avoid = func(m protocol.Move) bool { return failing[m.To] }
			g.Uneven = Patience
			if moves := g.settle(); moves > 256 || slices.Max(g.moved) > 2 {
				t.Errorf("%d moves, %d of one entry", moves, slices.Max(g.moved))
			}
			if g.IsUneven() {
				t.Error("a settled plan is uneven")
			}
			g.checkPairs(failing)
			if moves := g.noise(); slices.Max(g.moved) > 1 {
				t.Errorf("noise makes %d moves in an hour, %d of one entry", moves, slices.Max(g.moved))
			}
		})
	}
}

// checkPairs checks that no entry is left whose move would help two members of which one has more than
// one and a half times the weight of the other: these differ by more than 20 % from any mean.
func (g *group) checkPairs(failing map[protocol.ID]bool) {
	g.Helper()
	b := g.board()
	for i, e := range g.Entries {
		from := b.all[e.Owner]
		for _, to := range b.members {
			if !failing[to.ID] && from.weight > 1.5*to.weight && from.weight-to.weight > b.weights[i] {
				g.Fatalf("entry %d of weight %.1f stays with %s, which has %.1f, and %s has %.1f", i, b.weights[i],
					from.ID, from.weight, to.ID, to.weight)
			}
		}
	}
}

// TestS1_AMemberThatJoinsBesideALargeSlotGetsItsShare: one slot has more than half of all load, and its
// owner has no other one. A member that joins gets slots of the third.
func TestS1_AMemberThatJoinsBesideALargeSlotGetsItsShare(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	for i := range g.Entries {
		g.Loads[i] = 10
		g.give(i, "b")
	}
	g.Loads[0] = 10_000
	g.give(0, "a")
	g.Uneven = Patience
	if n := g.settle(); n > 0 || g.IsUneven() {
		t.Errorf("%d moves beside a large slot", n)
	}
	g.join("c", "1")
	g.Uneven = 0
	if n := g.settle(); n < 63 || n > 65 || !g.IsUneven() { // half of its share of 255
		t.Errorf("%d moves begin at once; uneven: %t", n, g.IsUneven())
	}
	g.Uneven = Patience
	g.settle()
	if owned := g.owned(); owned["a"] != 1 || owned["c"] < 100 || g.IsUneven() {
		t.Errorf("the members own %v", owned)
	}
}

// TestS1_UnevenMembersBesideALargeSlot: the heaviest member has one slot, and the others are uneven.
func TestS1_UnevenMembersBesideALargeSlot(t *testing.T) {
	g := newGroup(t, 1)
	for _, id := range []string{"a", "b", "c"} {
		g.join(id, "1")
	}
	for i := range g.Entries {
		g.Loads[i] = 10
		switch {
		case i == 0:
			g.Loads[i] = 3000
			g.give(i, "a")
		case i < 20:
			g.give(i, "c")
		default:
			g.give(i, "b")
		}
	}
	g.Uneven = Patience
	g.settle()
	if owned := g.owned(); owned["c"] < 100 || g.IsUneven() {
		t.Errorf("the members own %v", owned)
	}
}
