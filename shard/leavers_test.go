package shard

import (
	"testing"
	"time"
)

// TestS4_ALeaverAfterAHandOverThatWasLate: a has calls of 40 s as c joins, so that its hand-over is taken back.
// Then a leaves, without calls.
func TestS4_ALeaverAfterAHandOverThatWasLate(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 40 * time.Second })
		w.covered(a)
		c := w.start("c", "1", func(p *process) { p.warmFor = 5 * time.Second })
		time.Sleep(37 * time.Second)
		a.set(func(p *process) { p.drainFor = 0 })
		if n := a.Health().Moves.TakenBack; n == 0 {
			t.Fatal("nothing was taken back")
		}
		time.Sleep(2 * time.Second)
		w.covered(a)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		w.covered(c)
		w.wantBetween("the longest gap", w.longestGap(left), 0, time.Second)
	})
}

// TestS4_ALeaverAfterHandOversOfAnotherMemberThatWereLate: a has calls of 40 s as c joins. Then b leaves,
// without calls.
func TestS4_ALeaverAfterHandOversOfAnotherMemberThatWereLate(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "1", func(p *process) { p.warmFor = 5 * time.Second })
		time.Sleep(5 * time.Minute)
		a.set(func(p *process) { p.drainFor, p.warmFor = 40*time.Second, 5*time.Second })
		c := w.start("c", "1", func(p *process) { p.warmFor = 5 * time.Second })
		time.Sleep(37 * time.Second)
		a.set(func(p *process) { p.drainFor = 0 })
		if n := a.Health().Moves.TakenBack; n == 0 {
			t.Fatal("nothing was taken back")
		}
		time.Sleep(2 * time.Second)
		w.covered(a, b, c)
		left := time.Now()
		b.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		w.covered(a, c)
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

// TestS4_APlannerThatWaitsForItsCallsLeavesThePlanToOthers: a, which plans, leaves with calls that run for
// longer than its grace. Meanwhile b leaves.
func TestS4_APlannerThatWaitsForItsCallsLeavesThePlanToOthers(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, p := range []*process{b, c} {
			p.set(func(p *process) { p.warmFor = 5 * time.Second })
		}
		a.set(func(p *process) { p.drainFor = time.Hour })
		a.stop()
		time.Sleep(21 * time.Second)
		left := time.Now()
		if h := c.Health(); len(h.Members) != 3 {
			t.Fatalf("%+v", h)
		}
		b.leave()
		w.wantBetween("the leave", time.Since(left), 0, 8*time.Second)
		var gap time.Duration
		time.Sleep(2 * time.Minute)
		w.covered(c)
		for n := range Count {
			spans := w.of(n)
			for i, s := range spans[1:] {
				if spans[i].process == "b" && !spans[i].end.Before(left) {
					gap = max(gap, s.begin.Sub(spans[i].end))
				}
			}
		}
		w.wantBetween("the longest gap of slots of b", gap, 0, time.Second)
	})
}

func TestS4_AJoinWhileThePlannerWaitsForItsCalls(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		a.set(func(p *process) { p.drainFor = time.Hour })
		a.stop()
		time.Sleep(21 * time.Second)
		d := w.start("d", "1")
		time.Sleep(10 * time.Second)
		if d.serves() == 0 {
			t.Errorf("d serves no slots after 10 s; b %d, c %d, the planner is %s", b.serves(), c.serves(), c.Health().Planner)
		}
	})
}
