package shard

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS4_ALeaverAfterAHandOverThatFailed: slots of a were shut and opened again, as c joined. Then
// a leaves, without calls.
func TestS4_ALeaverAfterAHandOverThatFailed(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 40 * time.Second })
		w.covered(a)
		c := w.start("c", "1", taking(5*time.Second))
		time.Sleep(37 * time.Second)
		a.set(func(p *process) { p.drainFor = 0 })
		if a.longestShut == 0 {
			t.Fatal("no slot was shut and opened again")
		}
		time.Sleep(40 * time.Second)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		w.covered(c)
		w.wantBetween("the longest gap", w.longestGap(left), 0, time.Second)
	})
}

// TestS4_ALeaverAfterAMemberThatWarmedLate: c needs 35 s to warm at first.
func TestS4_ALeaverAfterAMemberThatWarmedLate(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		c := w.start("c", "1", neverWarm)
		time.Sleep(35 * time.Second)
		c.set(func(p *process) { p.neverWarm, p.warmFor = false, 5*time.Second })
		time.Sleep(2 * time.Second)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		w.covered(c)
		w.wantBetween("the longest gap", w.longestGap(left), 0, time.Second)
	})
}

// TestS4_APlannerThatWaitsForItsCallsLeavesThePlanToOthers: a, which plans, leaves with calls that
// run for longer than its grace. Meanwhile b leaves, and d joins.
func TestS4_APlannerThatWaitsForItsCallsLeavesThePlanToOthers(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, p := range []*process{b, c} {
			p.set(taking(5 * time.Second))
		}
		a.call(allSlots, forever)
		a.set(func(p *process) { p.ignores = true })
		a.stop()
		time.Sleep(10 * time.Second)
		left := time.Now()
		h := c.Health()
		if len(h.Members) != 3 || memberOf(h, a).Does != "leaving" || h.Planner == a.Health().Identity {
			t.Fatalf("%+v", h)
		}
		b.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		d := w.start("d", "1")
		time.Sleep(20 * time.Second)
		if d.serves() < 50 {
			t.Errorf("d serves %d slots; c %d, the planner is %s", d.serves(), c.serves(), c.Health().Planner)
		}
		if err := a.Wait(); !errors.Is(err, ErrStragglers) {
			t.Errorf("a left with %v", err)
		}
		time.Sleep(time.Minute)
		w.covered(c, d)
		for n, spans := range w.all() {
			for i, s := range spans[1:] {
				if spans[i].process == "b" && s.begin.Sub(spans[i].end) > time.Second {
					t.Errorf("slot %d of b had no calls for %v", n, s.begin.Sub(spans[i].end))
				}
			}
		}
	})
}

// TestS4_CallsEndAtTwoThirdsOfTheGrace: their contexts end with a cause, and others have the slots.
func TestS4_CallsEndAtTwoThirdsOfTheGrace(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		called := a.calls()
		a.call(called, forever)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 16*time.Second, 18*time.Second)
		w.covered(b)
		if a.aborted != called || len(a.left) != 1 || a.left[0] != nil {
			t.Errorf("the contexts of %v ended; a left with %v", a.aborted, a.left)
		}
		w.wantBetween("the longest gap", w.longestGap(left), 0, time.Second)
	})
}

// TestS4_CallsThatDoNotReturnAreAnErrorAndKeepTheLease: they are named.
func TestS4_CallsThatDoNotReturnAreAnErrorAndKeepTheLease(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		a.set(func(p *process) { p.ignores = true })
		a.call(slot.Of(3, 4, 5), forever)
		left := time.Now()
		a.stop()
		err := a.Wait()
		w.wantBetween("the leave", time.Since(left), 25*time.Second, 26*time.Second)
		isNamed := err != nil && strings.Contains(err.Error(), "calls of 3-5")
		if !errors.Is(err, ErrStragglers) || !isNamed || len(a.left) != 1 || !errors.Is(a.left[0], ErrStragglers) {
			t.Errorf("the error is %v, a left with %v", err, a.left)
		}
		w.wantBetween("the next owner", w.covered(w.start("b", "1")), duration*2/3, takeOverBound)
	})
}

// TestS4_TheEndOfTheWorkLeavesTheGroup: the context of Join goes on.
func TestS4_TheEndOfTheWorkLeavesTheGroup(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		left := time.Now()
		close(a.ends)
		if err := a.Wait(); err != nil {
			t.Error(err)
		}
		w.wantBetween("the leave", time.Since(left), 0, 2*time.Second)
		w.covered(b)
		w.wantBetween("the longest gap", w.longestGap(left), 0, time.Second)
		if h := a.Health(); h.State != Stopped || len(a.left) != 1 || a.left[0] != nil {
			t.Errorf("a left with %v: %+v", a.left, h)
		}
	})
}

// TestS4_AllLeaveAtOnce: nobody waits for another.
func TestS4_AllLeaveAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		left := time.Now()
		for _, p := range []*process{a, b, c} {
			p.call(allSlots, 300*time.Millisecond)
			p.stop()
		}
		for _, p := range []*process{a, b, c} {
			p.leave()
		}
		w.wantBetween("the leave", time.Since(left), 0, 3*time.Second)
		d := w.start("d", "1")
		w.wantBetween("the next start", w.covered(d), 0, 2*time.Second)
	})
}

// TestS4_ALeaverWaitsWithoutHaste: its calls run on after the end of their contexts. It looks at
// them as often as while slots move.
func TestS4_ALeaverWaitsWithoutHaste(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		called := a.calls()
		a.call(called, forever)
		a.set(func(p *process) { p.ignores = true })
		a.stop()
		time.Sleep(19 * time.Second)
		a.set(func(p *process) { p.asked = 0 })
		time.Sleep(5 * time.Second)
		a.set(func(p *process) {
			if n := p.asked / called.Len(); n > 2*int(5*time.Second/soon) {
				t.Errorf("it has asked %d times for the calls of each slot in 5 s", n)
			}
		})
		a.Wait() //nolint:errcheck // calls still run
		time.Sleep(time.Minute)
		w.covered(b)
	})
}
