package protocol

import (
	"maps"
	"testing"
)

func live(ID) Standing { return Live }

// TestS2_AHandOver goes through the phases of the two members of a hand-over.
func TestS2_AHandOver(t *testing.T) {
	a, b := &Member{Self: "a"}, &Member{Self: "b"}
	version := uint64(0)
	write := func(m *Member, moves ...Move) {
		t.Helper()
		entries, changed := m.Next(live, func(int) ID { return "a" }, moves)
		if !changed {
			t.Fatalf("%s wants no change of %+v", m.Self, m.Entries())
		}
		version++
		a.See(version, entries)
		b.See(version, entries)
	}
	want := func(ofA, ofB Phase) {
		t.Helper()
		if a.Phase(0) != ofA || b.Phase(0) != ofB {
			t.Fatalf("the phases are %d and %d, want %d and %d", a.Phase(0), b.Phase(0), ofA, ofB)
		}
	}
	version++
	a.See(version, []Entry{{}})
	b.See(version, []Entry{{}})
	want(Elsewhere, Elsewhere)
	write(a)
	want(Serving, Elsewhere)
	write(a, Move{Entry: 0, To: "b"})
	want(Serving, Warming)
	b.Warmed(0)
	want(Serving, Warm)
	write(b)
	want(Draining, Warm)
	a.Drained(0, map[string]string{"pods": "17"})
	want(Drained, Warm)
	if a.See(1, []Entry{{Owner: "a"}}); a.Phase(0) != Drained {
		t.Error("an older map ends the doubt")
	}
	write(a)
	want(Elsewhere, Serving)
	e := b.Entries()[0]
	if e.Epoch != 2 || !maps.Equal(e.Versions, map[string]string{"pods": "17"}) || b.Version() != version {
		t.Errorf("the entry is %+v", e)
	}
}

func TestS2_ALateHandOverIsTakenBack(t *testing.T) {
	a := &Member{Self: "a"}
	a.See(1, []Entry{{Owner: "a", Epoch: 4, Next: "b", Ready: true}})
	a.Drained(0, nil)
	a.Late(0)
	entries, changed := a.Next(live, nil, nil)
	if e := entries[0]; !changed || e.Owner != "a" || e.Next != "" || e.Ready || e.Epoch != 4 {
		t.Errorf("the entry becomes %+v", e)
	}
	if a.Phase(0) != Drained {
		t.Error("it calls before the map says that it may")
	}
	if a.See(2, entries); a.Phase(0) != Serving {
		t.Errorf("the phase is %d", a.Phase(0))
	}
}

func TestS1_ThePlannerIsTheLowestLiveMember(t *testing.T) {
	standings := map[ID]Standing{"a": Ended, "b": Held, "d": Live, "c": Live}
	standing := func(id ID) Standing { return standings[id] }
	if got := Planner([]ID{"d", "c", "b", "a"}, standing); got != "c" {
		t.Errorf("the planner is %q", got)
	}
	if got := Planner([]ID{"a"}, standing); got != "" {
		t.Errorf("the planner of an ended group is %q", got)
	}
}
