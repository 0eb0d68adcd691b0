package delta_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// leaving selects keys, whatever their UID.
func leaving(keys ...string) func(key, uid string) bool {
	return func(key, _ string) bool {
		return slices.Contains(keys, key)
	}
}

// TestS6_MergedObjects merges a list of objects that the last list of the partition did not ask for.
func TestS6_MergedObjects(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("50", state("a", 10, "A"))
	r.expect("+a@10#A i")
	r.push(set(state("b", 20, "B")), set(state("c", 60, "C")), del(state("d", 61, "D")))
	r.expect("+c@60#C")
	r.expectStale(2) // the list would have named b
	r.push(merged(state("b", 20, "B")), merged(state("c", 30, "C")), merged(state("d", 40, "D")),
		merged(state("a", 10, "A")), set(state("b", 62, "B")))
	got := r.expect("+b@20#B", "b@20#B>b@62#B")
	r.expectStale(5) // and the merged c, d and a
	if got.replaced {
		t.Error("a merge counts as a list")
	}
}

// TestS6_Leave ends objects that have moved, after the changes before it.
func TestS6_Leave(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("50", state("a", 10, "A"), state("b", 20, "B"), state("c", 30, "C"))
	r.push(set(state("b", 51, "B")), set(state("d", 52, "D")))
	r.must(r.Leave(leaving("b", "d", "z")))
	r.push(set(state("c", 53, "C")))
	r.expect("+a@10#A i", "+b@20#B i", "+c@30#C i")
	r.expect("b@20#B>b@51#B", "+d@52#D")
	r.expect("-b@51#B/b@51#B t moved", "-d@52#D/d@52#D t moved")
	r.expect("c@30#C>c@53#C")
	r.must(r.Leave(leaving("z")))
	r.push(merged(state("b", 51, "B")))
	r.expect("+b@51#B") // in the state that it had
	r.Close()
	if err := r.Leave(leaving("a")); !errors.Is(err, delta.ErrClosed) {
		t.Errorf("Leave of a closed queue: %v", err)
	}
}

// TestS6_ListOfSlots replaces a list by one without objects that have moved.
func TestS6_ListOfSlots(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	r.list("5", state("a", 1, "A"), state("b", 2, "B"), state("c", 3, "C"))
	r.expect("+a@1#A i", "+b@2#B i", "+c@3#C i")
	moved := func(key, _ string) bool { return key == "b" }
	r.must(r.Replace(t.Context(), "", "9", items(state("a", 1, "A")), delta.ReplaceOptions{Moved: moved}))
	r.expect("-b@2#B/b@2#B t moved", "-c@3#C/c@3#C t")
}
