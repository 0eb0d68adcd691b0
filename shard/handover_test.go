package shard

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

func TestS2_AHandOverWaitsForCallsAndGivesTheirVersions(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 500 * time.Millisecond })
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(time.Minute)
		w.wantServing("after the join", 115, 128, b)
		for n, spans := range w.all() {
			if len(spans) == 2 && spans[1].versions["pods"] != "a" {
				t.Errorf("slot %d comes with the versions %v", n, spans[1].versions)
			}
		}
		// Calls run for half a second, in which no new ones begin.
		w.wantBetween("the longest gap", w.longestGap(joined), 0, 500*time.Millisecond)
	})
}

// TestS2_ALongCallHoldsUpNobody has a call of 15 minutes in some slots of a. Then b joins, and gets
// them last.
func TestS2_ALongCallHoldsUpNobody(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		called := slot.Of(1, 77, 128, 200, 255)
		a.call(called, 15*time.Minute)
		began := time.Now()
		b := w.start("b", "1")
		time.Sleep(time.Minute)
		w.wantServing("beside the calls", 110, 128, b)
		if calls := b.calls().And(called); !calls.IsEmpty() {
			t.Errorf("b calls for %v beside the calls of a", calls)
		}
		time.Sleep(17 * time.Minute)
		w.covered(a, b)
		if h := a.Health(); h.Moving != 0 || h.Covered != 1 {
			t.Errorf("%d slots move: %+v", h.Moving, h)
		}
		w.wantMoved("at the end", began, Count/2, 1)
		w.wantBetween("the longest time without new calls", a.longestShut, 0, time.Second)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
	})
}

// TestS2_CallsThatOverlapMoveToo: whenever a slot is shut, a call of 4 s has just begun. No key
// waits for longer than a second for five minutes; then the slots move.
func TestS2_CallsThatOverlapMoveToo(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 4 * time.Second })
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.wantServing("while no key may wait", 0, 0, b)
		w.wantBetween("the longest time without new calls", a.longestShut, time.Second, time.Second)
		time.Sleep(10 * time.Minute)
		w.covered(a, b)
		w.wantServing("later", 115, 128, b)
		w.wantMoved("later", joined, Count/2, 1)
		w.wantBetween("the longest time without new calls", a.longestShut, 2*time.Second, 4*time.Second)
	})
}

// TestS2_ACallThatHangsKeepsItsSlotAlone, and other slots move.
func TestS2_ACallThatHangsKeepsItsSlotAlone(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		a.call(slot.Of(7), forever)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(45 * time.Minute)
		w.wantServing("later", 110, 128, b)
		if !a.calls().Has(7) || a.longestShut > time.Second {
			t.Errorf("a calls for %v, and none for %v", a.calls(), a.longestShut)
		}
		w.wantMoved("later", joined, Count/2, 1)
		w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
		a.set(func(p *process) { p.served[7].until = time.Time{} })
	})
}

// TestS2_AnOwnerWhoseCachesDoNotShowItsWritesGoesOn: it hands over only once they do.
func TestS2_AnOwnerWhoseCachesDoNotShowItsWritesGoesOn(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.unknown = true })
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(2 * time.Minute)
		w.wantServing("while caches lag", 0, 0, b)
		a.set(func(p *process) { p.unknown = false })
		time.Sleep(2 * time.Minute)
		w.wantServing("later", 115, 128, b)
		w.wantMoved("later", joined, Count/2, 1)
		w.wantBetween("the longest time without new calls", a.longestShut, 0, time.Second)
	})
}

// TestS2_AnHeirThatDoesNotWarmMovesNothing: it has no page of its list for a minute, and declines.
func TestS2_AnHeirThatDoesNotWarmMovesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1", neverWarm)
		time.Sleep(50 * time.Second)
		if h := a.Health(); h.Moving == 0 || h.MovingFor < 40*time.Second {
			t.Errorf("nothing moves: %+v", h)
		}
		time.Sleep(40 * time.Second)
		h := a.Health()
		if h.Moving != 0 || a.serves() != Count || h.Covered != 1 || b.Health().Owned != 0 {
			t.Errorf("a serves %d slots: %+v", a.serves(), h)
		}
		if m := memberOf(h, b); m.Does != "declines" {
			t.Errorf("b %s", m.Does)
		}
		synctest.Wait()
		if !b.dropped.Minus(allSlots).IsEmpty() || b.dropped.Len() < 100 {
			t.Errorf("b has dropped %v", b.dropped)
		}
		w.wantMoved("at the end", joined, 0, 0)
		w.wantBetween("the longest gap", w.longestGap(joined), 0, 0)
	})
}

// memberOf returns the health of a process as a member.
func memberOf(h Health, p *process) (found MemberHealth) {
	for _, m := range h.Members {
		if m.Identity == p.Health().Identity {
			found = m
		}
	}
	return found
}

// TestS2_AListThatGoesOnIsWaitedFor: a list of five minutes whose pages come.
func TestS2_AListThatGoesOnIsWaitedFor(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1", taking(5*time.Minute))
		time.Sleep(5 * time.Minute)
		w.wantServing("before the list is done", Count, Count, a)
		time.Sleep(time.Minute)
		w.wantServing("after it", 115, 128, b)
		if b.warms != 1 {
			t.Errorf("b has listed %d times", b.warms)
		}
		w.wantMoved("at the end", joined, Count/2, 1)
		w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
	})
}

// TestS2_ListsOf40Seconds are those of 200,000 objects, in pages of 500 that take 100 ms.
func TestS2_ListsOf40Seconds(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", taking(40*time.Second))
		w.wantBetween("the first owner", w.covered(a), 40*time.Second, 50*time.Second)
		joined := time.Now()
		b := w.start("b", "1", taking(40*time.Second))
		time.Sleep(time.Minute)
		w.wantServing("a minute after the join", 115, 128, b)
		w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
	})
}

// TestS2_ALeaverWaitsForListsForTwoThirdsOfItsGrace: with a grace that has room for the list of the
// heir, no slot is without calls. Otherwise the gap is what the list needs beyond two thirds.
func TestS2_ALeaverWaitsForListsForTwoThirdsOfItsGrace(t *testing.T) {
	for name, c := range map[string]struct{ grace, list, gap time.Duration }{
		"15 s in 25 s": {0, 15 * time.Second, time.Second},
		"25 s in 45 s": {45 * time.Second, 25 * time.Second, time.Second}, // as in docs/guides/scale.md
		"40 s in 75 s": {75 * time.Second, 40 * time.Second, time.Second},
		"25 s in 25 s": {0, 25 * time.Second, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				options := with(func(o *Options) { o.Grace = c.grace })
				a, b := w.start("a", "1", taking(c.list), options), w.start("b", "1", taking(c.list), options)
				w.covered(a, b)
				w.wantServing("before", Count/2, Count/2, a, b)
				time.Sleep(time.Minute)
				left := time.Now()
				a.leave()
				w.covered(b)
				w.wantBetween("the longest gap", w.longestGap(left), 0, c.gap)
				w.wantMoved("the leave", left, Count/2, 1)
			})
		})
	}
}

// TestS2_AnHeirThatIsKilledOnceItIsReady is a crash: nobody calls for its slots until its Lease has
// run out.
func TestS2_AnHeirThatIsKilledOnceItIsReady(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.start("a", "1", shortLeases), w.start("b", "1", shortLeases), w.start("c", "1", shortLeases)
		w.covered(a, b, c)
		time.Sleep(time.Minute)
		a.set(func(p *process) { p.drainFor = 500 * time.Millisecond })
		a.stop()
		isReady := func(e Entry) bool { return e.Next == b.Health().Identity && e.Ready }
		for n := 0; !slices.ContainsFunc(a.Map(), isReady); n++ {
			if n == 300 {
				t.Fatalf("nothing of b is ready: %+v", a.Health())
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		b.crash()
		killed := time.Now()
		if err := a.Wait(); err != nil {
			t.Error(err)
		}
		w.wantBetween("the leave", time.Since(killed), 0, 2*time.Second)
		w.covered(c)
		w.wantBetween("the take-over", time.Since(killed), 3*time.Second, 7*time.Second)
	})
}

// TestS2_AnOwnerThatHasNotReachedVersionsPassesThemOn: b gets slots from a, does not reach the
// versions, and leaves.
func TestS2_AnOwnerThatHasNotReachedVersionsPassesThemOn(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1"), w.start("b", "1", func(p *process) { p.neverReaches = true })
		time.Sleep(time.Minute)
		c := w.start("c", "1")
		a.leave() // to b, and to c once that takes
		time.Sleep(10 * time.Second)
		b.leave()
		w.covered(c)
		passed := 0
		for n, spans := range w.all() {
			if last := spans[len(spans)-1]; last.versions["pods"] == "a" {
				passed++
			} else if last.versions != nil {
				t.Errorf("slot %d comes with %v", n, last.versions)
			}
		}
		if passed < Count/3 {
			t.Errorf("%d slots came with the versions of a", passed)
		}
	})
}

// TestS2_AMemberThatLeavesGoesOnWithoutVersions that its caches do not show.
func TestS2_AMemberThatLeavesGoesOnWithoutVersions(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		a.set(func(p *process) { p.unknown = true })
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), time.Second, 4*time.Second)
		w.covered(b)
		w.wantBetween("the longest gap", w.longestGap(left), 0, 2*time.Second)
		for n, spans := range w.all() {
			if s := spans[len(spans)-1]; s.begin.After(left) && s.versions != nil {
				t.Errorf("slot %d comes with the versions %v", n, s.versions)
			}
		}
	})
}

// TestS2_WarmThatFailsIsTriedAgainLater: each try may list much.
func TestS2_WarmThatFailsIsTriedAgainLater(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.warmErr = errForbidden })
		time.Sleep(5 * time.Minute)
		a.mu.Lock()
		if a.warms < 4 || a.warms > 35 {
			t.Errorf("it was tried %d times in five minutes", a.warms)
		}
		a.warmErr = nil
		a.mu.Unlock()
		w.wantBetween("the next try", w.covered(a), 0, time.Minute)
	})
}
