package delta_test

import (
	"fmt"
	"testing"

	"github.com/tidings-go/tidings/internal/delta"
)

// folding returns a rig that folds from the first pending change on, after a list of version 1.
func folding(t *testing.T) *rig {
	r := newRig(t, delta.Options[*object]{FoldAbove: 1})
	r.list("1")
	r.pop()
	return r
}

func TestP10_UpdatesOfOneIncarnationFoldInPlace(t *testing.T) {
	r := folding(t)
	for v := 1; v <= 100; v++ {
		r.push(set(state("hot", 2*v, "H")))
		if v == 10 {
			r.push(set(state("other", 21, "O")))
		}
	}
	if r.Len() != 3 || r.Folded() != 98 {
		t.Errorf("Len %d, Folded %d", r.Len(), r.Folded())
	}
	// The hot key keeps its place before the other one.
	r.expect("+hot@2#H", "hot@2#H>hot@200#H", "+other@21#O")
	r.expectStale(0)
}

func TestP10_NothingFoldsBelowTheThreshold(t *testing.T) {
	r := newRig(t, delta.Options[*object]{FoldAbove: 5})
	for v := 1; v <= 5; v++ {
		r.push(set(state("a", v, "A")))
	}
	if r.Len() != 5 || r.Folded() != 0 {
		t.Errorf("Len %d, Folded %d", r.Len(), r.Folded())
	}
	r.push(set(state("a", 6, "A"))) // the table is made of what is pending
	if r.Len() != 5 || r.Folded() != 1 {
		t.Errorf("Len %d, Folded %d", r.Len(), r.Folded())
	}
	r.expect("+a@1#A", "a@1#A>a@2#A", "a@2#A>a@3#A", "a@3#A>a@4#A", "a@4#A>a@6#A")
	r.push(set(state("a", 7, "A")), set(state("a", 8, "A")), set(state("a", 9, "A")))
	r.expect("a@6#A>a@7#A", "a@7#A>a@8#A", "a@8#A>a@9#A")
}

func TestP10_AddsAndDeletesNeverFold(t *testing.T) {
	r := folding(t)
	for round := range 3 {
		uid, v := fmt.Sprint("U", round), 10*round
		r.push(set(state("a", v+2, uid)), set(state("a", v+3, uid)), set(state("a", v+4, uid)), set(state("a", v+5, uid)), del(state("a", v+6, uid)))
	}
	r.expect(
		"+a@2#U0", "a@2#U0>a@5#U0", "-a@5#U0/a@6#U0",
		"+a@12#U1", "a@12#U1>a@15#U1", "-a@15#U1/a@16#U1",
		"+a@22#U2", "a@22#U2>a@25#U2", "-a@25#U2/a@26#U2")
}

func TestP10_NothingFoldsAcrossAnotherIncarnation(t *testing.T) {
	r := folding(t)
	r.push(set(state("a", 2, "A")), set(state("a", 3, "A")), set(state("a", 4, "B")), set(state("a", 5, "B")), set(state("a", 6, "B")), set(state("a", 7, "A")), set(state("a", 8, "A")))
	r.expect("+a@2#A", "a@2#A>a@3#A", "a@3#A>a@4#B", "a@4#B>a@6#B", "a@6#B>a@7#A", "a@7#A>a@8#A")
}

func TestP10_UnknownIncarnationsNeverFold(t *testing.T) {
	r := folding(t)
	r.push(set(state("a", 2, "")), set(state("a", 3, "")), set(state("a", 4, "")))
	r.expect("+a@2#", "a@2#>a@3#", "a@3#>a@4#")
}

func TestP10_NothingFoldsAcrossABarrier(t *testing.T) {
	r := folding(t)
	r.push(set(state("a", 2, "A")), set(state("a", 3, "A")))
	if err := r.Resync("token"); err != nil {
		t.Fatal(err)
	}
	r.push(set(state("a", 4, "A")), set(state("a", 5, "A")))
	r.list("5", state("a", 5, "A"))
	r.push(set(state("a", 6, "A")), set(state("a", 7, "A")))
	r.expect("+a@2#A", "a@2#A>a@3#A")
	r.expect("a@3#A>a@4#A", "a@4#A>a@5#A")
	r.expect()
	// A batch that is being processed is not touched.
	if err := r.Pop(t.Context(), func(b delta.Batch[*object]) {
		r.push(set(state("a", 8, "A")), set(state("a", 9, "A")), set(state("a", 10, "A")))
		r.cache.apply(b)
	}); err != nil {
		t.Fatal(err)
	}
	r.expect("a@7#A>a@8#A", "a@8#A>a@10#A")
}

// An object that left the selection (a delete) and came back is an add, also if old states of it are replayed before.
func TestP10_ReplaysAreNoProofOfAnUpdate(t *testing.T) {
	r := folding(t)
	r.push(set(state("a", 5, "A")), del(state("a", 6, "A")))
	r.expect("+a@5#A", "-a@5#A/a@6#A")
	r.push(set(state("z", 6, "Z")), set(state("a", 4, "A"))) // a push that begins at what is reached
	r.push(set(state("a", 7, "A")))
	r.push(set(state("a", 8, "A")))
	r.expect("+z@6#Z", "+a@7#A", "a@7#A>a@8#A")
}

func TestP02_FoldingDoesNotGoBack(t *testing.T) {
	r := folding(t)
	r.push(set(state("a", 2, "A")), set(state("a", 6, "A")))
	r.push(set(state("a", 4, "A")), set(state("a", 6, "A")), set(state("a", 7, "A")))
	if r.Len() != 2 {
		t.Errorf("Len %d", r.Len())
	}
	r.expect("+a@2#A", "a@2#A>a@7#A")
	r.expectStale(2)
}
