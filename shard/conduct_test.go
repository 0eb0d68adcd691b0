package shard

import (
	"net/http"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// TestS1_AMemberThatNeverWarmsKeepsNoOtherFromItsShare: moves to it are tried less and less often.
// Once it warms, it gets its share.
func TestS1_AMemberThatNeverWarmsKeepsNoOtherFromItsShare(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		began := time.Now()
		b, c := w.start("b", "1", neverWarm), w.start("c", "1")
		time.Sleep(time.Hour)
		w.wantServing("after an hour", 100, 156, a, c)
		w.wantMoved("while b declines", began, Count/2, 1)
		if h := a.Health(); h.Covered != 1 || b.Health().Owned != 0 {
			t.Errorf("b owns %d slots: %+v", b.Health().Owned, h)
		}
		b.set(recovers)
		time.Sleep(15 * time.Minute)
		w.wantServing("after the recovery", 68, 103, a, b, c)
		w.covered(a, b, c)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
	})
}

// TestS5_AMemberThatDeclinesInheritsNothing while another one takes: the planner crashes, then a
// member joins, so that the one that never warms plans.
func TestS5_AMemberThatDeclinesInheritsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1"), w.start("b", "1", neverWarm)
		time.Sleep(10 * time.Second)
		c := w.start("c", "1")
		time.Sleep(20 * time.Minute) // b gives what it got at the start
		w.covered(a, c)
		crashed := time.Now()
		a.crash()
		w.covered(c)
		if took := time.Since(crashed); took > takeOverBound+3*time.Minute {
			t.Errorf("the take-over took %v", took)
		}
		d := w.start("d", "1")
		time.Sleep(20 * time.Minute)
		w.covered(c, d)
		w.wantServing("with another member", 100, 156, c, d)
		if h := c.Health(); b.Health().Owned != 0 || h.Covered != 1 {
			t.Errorf("b owns %d slots: %+v", b.Health().Owned, h)
		}
	})
}

// TestS5_AnOwnerThatCannotFillGives: it is alone for a while, and never warms. Then another one
// joins.
func TestS5_AnOwnerThatCannotFillGives(t *testing.T) {
	bubble(t, func(w *world) {
		b := w.start("b", "1", neverWarm)
		time.Sleep(10 * time.Minute)
		if n := b.Health().Owned; n != Count {
			t.Fatalf("b owns %d slots", n)
		}
		joined := time.Now()
		c := w.start("c", "1")
		w.covered(c)
		w.wantBetween("the take-over", time.Since(joined), 0, 10*time.Second)
		c.leave() // to b, as nobody else is there
		time.Sleep(time.Minute)
		joined = time.Now()
		d := w.start("d", "1")
		w.covered(d)
		w.wantBetween("the second take-over", time.Since(joined), 0, 3*time.Minute)
	})
}

// TestS4_ANewVersionThatNeverWarmsGetsNothing: a member of the older version leaves, and the other
// one serves all slots.
func TestS4_ANewVersionThatNeverWarmsGetsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		c := w.start("c", "2", neverWarm)
		time.Sleep(10 * time.Second)
		left := time.Now()
		a.leave() // after two thirds of its grace c owns what was on its way
		w.covered(b)
		w.wantBetween("the take-over", time.Since(left), 0, 4*time.Minute)
		time.Sleep(30 * time.Minute)
		w.wantServing("after half an hour", Count, Count, b)
		c.set(recovers)
		b.leave() // to the new version, as nobody else is there
		w.wantBetween("the next take-over", w.covered(c), 0, duration)
		if !c.unserved.IsEmpty() {
			t.Errorf("the handler was asked for the calls of %v, which it did not serve", c.unserved)
		}
	})
}

// TestS5_ATypeThatFailsEverywhereMovesNothing, as when its definition is gone: all members lack the
// controller, one after the other, and serve nothing.
func TestS5_ATypeThatFailsEverywhereMovesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		for _, p := range all {
			p.set(lacks("counter"))
			p.set(unready)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(30 * time.Minute)
		if h := all[0].Health(); h.Covered != 0 || h.NotReady != "0-255" || h.Nobody != "" {
			t.Errorf("while it fails: %+v", h)
		}
		for _, p := range all {
			p.set(recovers)
			time.Sleep(10 * time.Second)
		}
		time.Sleep(30 * time.Minute)
		w.covered(all...)
		w.wantMoved("in an hour", began, 0, 0)
		if h := all[0].Health(); h.Covered != 1 {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS5_ATypeThatFailsOnOneMemberMovesItsShareOnce, after two minutes; and again once the member
// can serve it.
func TestS5_ATypeThatFailsOnOneMemberMovesItsShareOnce(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four(quiet)
		began, failing := time.Now(), all[2]
		owned := failing.Health().Owned
		failing.set(lacks("counter"))
		failing.set(unready)
		time.Sleep(time.Minute + 50*time.Second)
		w.wantMoved("within two minutes", began, 0, 0)
		time.Sleep(30 * time.Second)
		w.covered(all[0], all[1], all[3])
		time.Sleep(time.Hour)
		w.wantMoved("while it fails", began, owned, 1)
		if m := memberOf(all[0].Health(), failing); m.Does != "gives" || len(m.Lacks) != 1 || !m.Live {
			t.Errorf("the member is %+v", m)
		}
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		failing.set(recovers)
		recovered := time.Now()
		time.Sleep(5 * time.Minute)
		w.covered(all...)
		w.wantServing("after the recovery", 51, 77, all...)
		w.wantMoved("after the recovery", recovered, Count/4, 1)
	})
}

// TestS5_ATypeThatFailsOnOneMemberForAMinuteMovesNothing.
func TestS5_ATypeThatFailsOnOneMemberForAMinuteMovesNothing(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		for range 10 {
			all[1].set(lacks("counter"))
			time.Sleep(time.Minute)
			all[1].set(recovers)
			time.Sleep(time.Minute)
		}
		w.wantMoved("in 20 minutes", began, 0, 0)
	})
}

// TestS5_AMemberThatFailsNowAndThenMovesItsShareLessAndLessOften: it fails for five minutes of ten.
func TestS5_AMemberThatFailsNowAndThenMovesItsShareLessAndLessOften(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four(quiet)
		began := time.Now()
		for range 18 {
			all[1].set(lacks("counter"))
			time.Sleep(5 * time.Minute)
			all[1].set(recovers)
			time.Sleep(5 * time.Minute)
		}
		w.wantMoved("in three hours", began, 8*64, 9)
	})
}

// TestS5_AMemberWhoseCallsAllHangGives what it can: eight workers have a call that never ends. Its
// other slots move once. Those of the calls stay, and are late.
func TestS5_AMemberWhoseCallsAllHangGives(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four(quiet)
		began, hanging := time.Now(), all[1]
		hung := hanging.hangs(8)
		time.Sleep(5 * time.Minute)
		if h := all[0].Health(); hanging.calls() != hung || h.Late != hung.String() {
			t.Errorf("it calls for %v, of which %v hang: %+v", hanging.calls(), hung, h)
		}
		w.covered(all...)
		time.Sleep(2 * time.Hour)
		w.wantMoved("in two hours", began, Count/4, 1)
		w.wantBetween("the longest time without new calls", hanging.longestShut, 0, time.Second)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		hanging.set(func(p *process) {
			recovers(p)
			for _, s := range p.served {
				s.until = time.Time{}
			}
		})
	})
}

// TestS5_CallsThatHangOnTwoMembersDoNotPassSlotsToAndFro.
func TestS5_CallsThatHangOnTwoMembersDoNotPassSlotsToAndFro(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		began := time.Now()
		a.hangs(8)
		time.Sleep(time.Second)
		b.hangs(8)
		time.Sleep(2 * time.Hour)
		w.wantMoved("in two hours", began, Count/2, 1)
		for _, p := range []*process{a, b} {
			p.set(func(p *process) {
				recovers(p)
				for _, s := range p.served {
					s.until = time.Time{}
				}
			})
		}
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
	})
}

// TestS5_ALateSlotStaysWithItsOwner, as it would be late elsewhere, too.
func TestS5_ALateSlotStaysWithItsOwner(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began, late := time.Now(), b.calls()
		b.set(func(p *process) { p.work.Late = late })
		time.Sleep(30 * time.Minute)
		w.covered(a, b, c)
		w.wantMoved("in half an hour", began, 0, 0)
		if h := c.Health(); h.Late != late.String() || h.Covered != 1 || h.LateFor < 29*time.Minute {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS5_MembersThatServeNothingHandOverAndTake: no member is ready. One leaves, and one joins.
func TestS5_MembersThatServeNothingHandOverAndTake(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			p.set(unready)
			p.set(lacks("counter"))
		}
		time.Sleep(10 * time.Minute)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 3*time.Second)
		w.covered(b, c)
		d := w.start("d", "1", unready, lacks("counter"))
		time.Sleep(5 * time.Minute)
		w.wantServing("after the join", 76, 95, b, c, d)
	})
}

// TestS4_AFixedVersionGetsTheSlotsOfTheBrokenOne: no member of the older version can serve, and one
// of the newer one joins.
func TestS4_AFixedVersionGetsTheSlotsOfTheBrokenOne(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		for _, p := range []*process{a, b} {
			p.set(unready)
			p.set(lacks("counter"))
		}
		time.Sleep(10 * time.Minute)
		c := w.start("c", "2")
		w.wantBetween("the take-over", w.covered(c), time.Second, 3*time.Minute)
	})
}

// TestS5_AMemberWhoseControllersDoNotStartTakesAfterAMinute, so that somebody takes.
func TestS5_AMemberWhoseControllersDoNotStartTakesAfterAMinute(t *testing.T) {
	bubble(t, func(w *world) {
		unstarted := func(p *process) { p.unstarted = true }
		a := w.start("a", "1", unstarted)
		time.Sleep(50 * time.Second)
		if h := a.Health(); h.Owned != 0 || memberOf(h, a).Does != "starting" {
			t.Errorf("while it starts: %+v", h)
		}
		w.wantBetween("the start", w.covered(a), 9*time.Second, 20*time.Second)
		b := w.start("b", "1", unstarted)
		time.Sleep(20 * time.Second)
		b.set(func(p *process) { p.unstarted = false })
		time.Sleep(20 * time.Second)
		w.wantServing("once it has started", 115, 128, b)
	})
}

// TestS1_AMemberWhoseWritesOfTheMapAreRefusedEndsItself: others can write, and it owns slots. It
// joins anew, owns nothing, and says so, until a write of it is accepted.
func TestS1_AMemberWhoseWritesOfTheMapAreRefusedEndsItself(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		refused := by("b", "update")
		refused.Name = "rollout"
		refusal := w.server.Inject(refused, apisim.Refuse(http.StatusForbidden, 0))
		at := time.Now()
		d := w.start("d", "1") // so that there is something to write
		time.Sleep(3 * time.Minute)
		w.covered(a, c, d)
		if h := a.Health(); len(b.terms) < 2 || h.Covered != 1 {
			t.Errorf("b had %d terms, the first ended with %v: %+v", len(b.terms), b.terms[0].Err(), h)
		}
		// What had drained when the first write was refused waits for the end.
		w.wantBetween("the longest gap", w.longestGap(at), 0, 33*time.Second)
		refusal.Lift()
		time.Sleep(5 * time.Minute)
		w.covered(a, b, c, d)
		w.wantServing("once they are accepted", 51, 77, a, b, c, d)
	})
}

// TestS1_RefusedWritesOfAllMembersMoveNothing: all wait, and go on once the server accepts writes.
func TestS1_RefusedWritesOfAllMembersMoveNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		refused := by("", "update")
		refused.Name = "rollout"
		refusal := w.server.Inject(refused, apisim.Refuse(http.StatusForbidden, 0))
		at := time.Now()
		d := w.start("d", "1")
		time.Sleep(10 * time.Minute)
		w.covered(a, b, c)
		w.wantMoved("while writes are refused", at, 0, 0)
		if h := a.Health(); len(a.terms) != 1 || h.Covered != 1 {
			t.Errorf("a had %d terms: %+v", len(a.terms), h)
		}
		refusal.Lift()
		time.Sleep(5 * time.Minute)
		w.covered(a, b, c, d)
		w.wantServing("once they are accepted", 51, 77, a, b, c, d)
		w.wantBetween("the longest gap", w.longestGap(at), 0, 2*time.Second) // T and a second
	})
}

// TestS3_ACrashWhileSlotsMoveToAMemberThatFails: d never warms. An owner, whose slots are on their
// way to d, has crashed; d gives what it inherits.
func TestS3_ACrashWhileSlotsMoveToAMemberThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		d := w.start("d", "1", neverWarm)
		time.Sleep(27 * time.Second)
		moving := 0
		for _, e := range c.Map() {
			if e.Next != "" && e.Owner == c.Health().Identity {
				moving++
			}
		}
		if moving == 0 {
			t.Fatal("nothing moves from c to d")
		}
		c.crash()
		w.wantBetween("the take-over", w.covered(a, b), 0, 4*time.Minute)
		time.Sleep(6 * time.Second)
		if h := a.Health(); d.Health().Owned != 0 || h.Covered != 1 {
			t.Errorf("d owns %d slots: %+v", d.Health().Owned, h)
		}
	})
}
