package delta_test

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// The queue refers to nothing of a batch once process has returned, though it reuses its arrays.
func TestMemoryOfABatchIsFreed(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	for name, fill := range map[string]func(o *object){
		"run":     func(o *object) { r.push(set(o), set(state("a", 0, "A")), del(state("a", 0, "A"))) },
		"replace": func(o *object) { r.list("", o) },
		"a long replace": func(o *object) { // its arrays are not used again
			all := []*object{o}
			for n := range 5000 {
				all = append(all, state(fmt.Sprint("b", n), 0, "B"))
			}
			r.list("", all...)
		},
		"token": func(o *object) {
			r.must(r.Resync(o))
		},
	} {
		kept := func() weak.Pointer[object] {
			o := state("a", 0, "A")
			fill(o)
			return weak.Make(o)
		}()
		if err := r.Pop(t.Context(), func(*delta.Batch[*object]) {}); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		if kept.Value() != nil {
			t.Errorf("%s: the object is still referred to", name)
		}
	}
	runtime.KeepAlive(r)
}

// The steady state does not allocate.
func TestMemorySteadyStateDoesNotAllocate(t *testing.T) {
	r := newRig(t, delta.Options[*object]{}, state("a", 1, "A"))
	changes := []delta.Event[*object]{set(state("a", 2, "A")), set(state("b", 3, "B"))}
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() {
		if err := r.Push(ctx, "", "", changes); err != nil {
			t.Error(err)
		}
		if err := r.Pop(ctx, func(*delta.Batch[*object]) {}); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for a push and a pop", n)
	}
}
