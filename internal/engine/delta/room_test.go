package delta_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// full returns a rig that is at its limit of three changes.
func full(t *testing.T) *rig {
	r := newRig(t, delta.Options[*object]{Limit: 3})
	r.push(set(state("a", 1, "A")), set(state("b", 2, "B")))
	r.push(set(state("c", 3, "C")), set(state("d", 4, "D"))) // taken whole: there was room
	return r
}

func TestP10_ProducersWaitWhileTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, produce := range map[string]func(r *rig) error{
			"Push": func(r *rig) error {
				return r.Push(t.Context(), "", "5", []delta.Event[*object]{set(state("e", 5, "E"))})
			},
			"Replace":  func(r *rig) error { return r.Replace(t.Context(), "", "5", nil, delta.ReplaceOptions{}) },
			"Bookmark": func(r *rig) error { return r.Bookmark(t.Context(), "", "5") },
		} {
			r := full(t)
			produced := make(chan error, 1)
			go func() { produced <- produce(r) }()
			synctest.Wait()
			r.process(func(*delta.Batch[*object]) {
				synctest.Wait()
				if len(produced) != 0 {
					t.Errorf("%s was taken while the batch was in process", name)
				}
			})
			if err := <-produced; err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if got := r.pop(); got.marks[0].Version != "5" {
				t.Errorf("%s: marks %v", name, got.marks)
			}
		}
	})
}

func TestResyncDoesNotWait(t *testing.T) {
	r := full(t)
	r.must(r.Resync("token"))
	if got := r.pop(); len(got.resync) != 1 {
		t.Errorf("resync %v", got.resync)
	}
}

// A context that has ended refuses also where there is room.
func TestEndedContextIsRefused(t *testing.T) {
	r := newRig(t, delta.Options[*object]{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Bookmark(ctx, "", "5"); !errors.Is(err, context.Canceled) || r.Len() != 0 {
		t.Errorf("error %v", err)
	}
}

func TestWaitForRoomEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := full(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := r.Push(ctx, "", "5", []delta.Event[*object]{set(state("e", 5, "E"))})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "4 changes pending, limit 3") {
			t.Errorf("error %v", err)
		}
		if time.Since(start) != time.Second {
			t.Errorf("waited %v", time.Since(start))
		}
		if err := r.Push(ctx, "", "5", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a context that has ended: %v", err)
		}
		r.expect("+a@1#A", "+b@2#B", "+c@3#C", "+d@4#D")
		r.push(set(state("e", 5, "E"))) // nobody is left in the line
		r.expect("+e@5#E")
	})
}

func TestRoomIsGivenInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, delta.Options[*object]{Limit: 2})
		r.push(set(state("a", 1, "A")), set(state("b", 2, "B")))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i := range 6 {
			go func() {
				if i == 0 || i == 3 { // these give up
					if err := r.Push(ctx, "", "", []delta.Event[*object]{set(state("gone", 0, ""))}); !errors.Is(err, context.Canceled) {
						t.Errorf("error %v", err)
					}
					return
				}
				o := state(fmt.Sprint("k", i), 10+i, "K")
				if err := r.Push(t.Context(), "", "", []delta.Event[*object]{set(o)}); err != nil {
					t.Error(err)
				}
			}()
			synctest.Wait()
		}
		cancel()
		synctest.Wait()
		r.expect("+a@1#A", "+b@2#B")
		synctest.Wait()
		r.expect("+k1@11#K", "+k2@12#K")
		synctest.Wait()
		r.expect("+k4@14#K", "+k5@15#K")
	})
}

// A refused Replace hands the room that it waited for on to the next.
func TestRefusedReplaceGivesItsRoomAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := full(t)
		replaced, pushed := make(chan error, 1), make(chan error, 1)
		go func() { replaced <- r.Replace(t.Context(), "", "1", nil, delta.ReplaceOptions{}) }()
		synctest.Wait()
		go func() { pushed <- r.Push(t.Context(), "", "5", []delta.Event[*object]{set(state("e", 5, "E"))}) }()
		synctest.Wait()
		r.pop()
		synctest.Wait()
		if err := <-replaced; !errors.Is(err, delta.ErrOlder) {
			t.Errorf("Replace: %v", err)
		}
		if err := <-pushed; err != nil {
			t.Errorf("Push: %v", err)
		}
		r.expect("+e@5#E")
	})
}

// A producer that comes while there is room again goes behind those that wait.
func TestNewcomersDoNotOvertakeWaitingProducers(t *testing.T) {
	for round := range 100 {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, delta.Options[*object]{Limit: 1})
			r.push(set(state("first", 1, "F")))
			waiting := []string{"second", "third"}[:1+round%2]
			for _, key := range waiting {
				go func() { r.push(set(state(key, 0, "K"))) }()
				synctest.Wait()
			}
			r.expect("+first@1#F")
			go func() { r.push(set(state("newcomer", 0, "K"))) }() // the second is awake, and perhaps not yet through
			for _, key := range append(waiting, "newcomer") {
				synctest.Wait()
				r.expect("+" + key + "@#K")
			}
		})
	}
}

// A producer whose context ends just as it is given room leaves the room to the next.
func TestRoomOfOneThatGivesUpGoesToTheNext(t *testing.T) {
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := full(t)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				err := r.Push(ctx, "", "", []delta.Event[*object]{set(state("e", 5, "E"))})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			}()
			synctest.Wait()
			go func() { r.push(set(state("f", 6, "F"))) }()
			synctest.Wait()
			if err := r.Pop(t.Context(), func(b *delta.Batch[*object]) {
				r.cache.apply(b)
				cancel() // the room follows at once
			}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			// The next producer's change is queued, with or without that of the one that gave up.
			if got := r.pop().deltas; got[len(got)-1] != "+f@6#F" {
				t.Fatalf("changes %q", got)
			}
		})
	}
}
