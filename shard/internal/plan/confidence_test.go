package plan

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/shard/internal/protocol"
)

// trust sets the confidence in members, for all entries. Others are sound.
func (g *group) trust(members map[protocol.ID]Confidence) {
	g.Confidence = func(_ int, id protocol.ID) Confidence { return members[id] }
}

// fail makes all entries of a member unserved.
func (g *group) fail(id protocol.ID) {
	g.Unserved = func(i int) bool { return g.Entries[i].Owner == id }
}

func TestS5_DoubtfulMembersInheritWhatNoOtherCanOwn(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	g.trust(map[protocol.ID]Confidence{"a": Doubtful, "b": OnTrial})
	g.inherit()
	if owned := g.owned(); owned["b"] != 256 {
		t.Errorf("the members own %v", owned)
	}
	g.trust(map[protocol.ID]Confidence{"a": Doubtful, "b": Doubtful})
	g.leave("b")
	g.settle()
	if owned := g.owned(); owned["a"] != 256 {
		t.Errorf("the members own %v after a leave", owned)
	}
}

// TestS4_TheNewestGenerationThatCanServeInherits: the entries of a leaver go to an older member if all
// newer ones are doubtful, and what these do not serve does so, too.
func TestS4_TheNewestGenerationThatCanServeInherits(t *testing.T) {
	g := newGroup(t, 1)
	g.join("old0", "1")
	g.join("old1", "1")
	g.inherit()
	g.join("new0", "2")
	g.trust(map[protocol.ID]Confidence{"new0": Doubtful})
	g.leave("old0")
	g.settle()
	if owned := g.owned(); owned["old1"] != 256 {
		t.Errorf("the members own %v", owned)
	}
	for i := range 100 {
		g.give(i, "new0")
	}
	g.fail("new0")
	g.settle()
	if owned := g.owned(); owned["old1"] != 256 {
		t.Errorf("the members own %v after the failure", owned)
	}
	g.join("new1", "2")
	g.fail("old1")
	g.settle()
	if owned := g.owned(); owned["new1"] != 256 {
		t.Errorf("the members own %v with another new one", owned)
	}
}

func TestS5_NothingMovesToDoubtfulMembers(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	g.join("b", "1")
	g.join("c", "1")
	g.fail("a")
	g.trust(map[protocol.ID]Confidence{"b": Doubtful, "c": Doubtful})
	g.Uneven = Patience
	if moves := g.Moves(); len(moves) > 0 || g.IsUneven() {
		t.Errorf("the moves are %v", moves)
	}
	g.trust(map[protocol.ID]Confidence{"b": OnTrial, "c": Doubtful})
	if moves := g.Moves(); len(moves) != 1 || moves[0].To != "b" {
		t.Errorf("for a trial the moves are %v", moves)
	}
	g.Unserved = nil
	g.Loads[7], g.Loads[9] = 1, 100
	if moves := g.Moves(); len(moves) != 1 || moves[0] != (protocol.Move{Entry: 7, To: "b"}) {
		t.Errorf("for a trial of the lightest entry the moves are %v", moves)
	}
}

// TestS5_MembersThatFailAreNoMembersForOthers has members of all kinds of confidence and generations, and
// loads of all sizes. Members that can serve get all entries that others do not serve, and share as
// they would without the others.
func TestS5_MembersThatFailAreNoMembersForOthers(t *testing.T) {
	for seed := range plans.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newGroup(t, seed)
			for i := range g.Entries {
				g.Loads[i] = math.Exp(g.random.NormFloat64() * 3)
			}
			n, trust := 2+g.random.IntN(8), map[protocol.ID]Confidence{}
			generations, sound := 1+g.random.IntN(2), 0
			failing, fails := map[protocol.ID]bool{}, map[protocol.ID]bool{}
			for i := range n {
				id := protocol.ID(fmt.Sprintf("m%02d", i))
				g.join(string(id), fmt.Sprint(g.random.IntN(generations)))
				trust[id] = Confidence(g.random.IntN(3))
				failing[id], fails[id] = trust[id] != Sound, trust[id] == Doubtful && g.random.IntN(2) == 0
				if !failing[id] {
					sound++
				}
			}
			g.inherit() // while all are sound
			g.trust(trust)
			g.Unserved = func(i int) bool { return fails[g.Entries[i].Owner] }
			g.Uneven = Patience
			n = g.drive(trust)
			unserved := 0
			for i := range g.Entries {
				if g.Unserved(i) {
					unserved++
				}
			}
			if sound > 0 && unserved > 0 {
				t.Errorf("%d entries are unserved, with %d sound members", unserved, sound)
			}
			if n > 256 || slices.Max(g.moved) > 2 {
				t.Errorf("%d moves, %d of one entry", n, slices.Max(g.moved))
			}
			if !g.board().mixed {
				g.checkPairs(failing)
			}
		})
	}
}

// drive carries out moves until no move is planned, and checks each of them. A trial fails. It returns the
// number of moves.
func (g *group) drive(trust map[protocol.ID]Confidence) (n int) {
	g.Helper()
	for {
		g.checkOrder()
		moves := g.Moves()
		if len(moves) == 0 {
			return n
		}
		for _, m := range moves {
			switch trust[m.To] {
			case Doubtful:
				g.Fatalf("entry %d moves to %s, which is doubtful or had a trial", m.Entry, m.To)
			case OnTrial:
				trust[m.To] = Doubtful
			default:
				g.give(m.Entry, m.To)
			}
			n++
		}
	}
}

func TestS4_ALeaverGivesItsEntriesAwayWhateverIsAvoided(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	g.inherit()
	g.Avoid = func(protocol.Move) bool { return true }
	g.leave("a")
	g.settle()
	if owned := g.owned(); owned["b"] != 256 {
		t.Errorf("the members own %v", owned)
	}
}

func TestS3_SoundNextOwnersInherit(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	for i := range g.Entries {
		g.Entries[i] = protocol.Entry{Owner: "ended", Next: "b"}
	}
	for confidence, want := range map[Confidence]protocol.ID{Sound: "b", OnTrial: "a", Doubtful: "a"} {
		g.trust(map[protocol.ID]Confidence{"b": confidence})
		if heirs := g.Heirs(g.isGone); len(heirs) != 256 || heirs[7] != want {
			t.Errorf("with confidence %d, entry 7 of %d goes to %q", confidence, len(heirs), heirs[7])
		}
	}
}

func TestS5_MembersThatServeNothingGetTheirShare(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	g.join("b", "1")
	g.fail("a")
	g.trust(map[protocol.ID]Confidence{"a": Doubtful})
	proven := false
	g.Unproven = func(protocol.ID) bool { return !proven }
	g.settle()
	if owned := g.owned(); owned["b"] != 128 {
		t.Errorf("the members own %v", owned)
	}
	proven = true
	g.settle()
	if owned := g.owned(); owned["b"] != 256 {
		t.Errorf("the members own %v later", owned)
	}
}

func TestS4_AFixedVersionRelievesTheBrokenOne(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.inherit()
	g.join("b", "2")
	g.fail("a")
	g.trust(map[protocol.ID]Confidence{"a": Doubtful})
	g.Unproven = func(protocol.ID) bool { return true }
	g.settle()
	if owned := g.owned(); owned["b"] == 0 {
		t.Errorf("the members own %v", owned)
	}
}

// TestS5_AMemberThatHasItsShareHidesNoOther: a fails. c serves nothing yet, and b does.
func TestS5_AMemberThatHasItsShareHidesNoOther(t *testing.T) {
	g := newGroup(t, 1)
	g.join("a", "1")
	g.join("b", "1")
	g.inherit()
	g.join("c", "1")
	g.fail("a")
	g.trust(map[protocol.ID]Confidence{"a": Doubtful})
	g.Unproven = func(id protocol.ID) bool { return id != "b" }
	g.settle()
	if owned := g.owned(); owned["a"] != 0 {
		t.Errorf("the members own %v", owned)
	}
}
