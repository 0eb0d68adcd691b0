package shard

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/lease/leasetest"
)

func neverWarm(p *process) { p.neverWarm = true }

func unready(p *process) { p.unready = true }

func recovers(p *process) { p.neverWarm, p.unready, p.late = false, false, Set{} }

// wantServing checks the numbers of slots that processes serve, in order.
func (w *world) wantServing(when string, least, most int, processes ...*process) {
	w.Helper()
	synctest.Wait()
	for _, p := range processes {
		if n := p.serves(); n < least || n > most {
			w.Errorf("%s: %s serves %d slots, want between %d and %d", when, p.name, n, least, most)
		}
	}
}

// TestS1_AMemberThatNeverWarmsKeepsNoOtherFromItsShare, and moves to it are tried less and less often. Once
// it warms, it gets its share within minutes.
func TestS1_AMemberThatNeverWarmsKeepsNoOtherFromItsShare(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b, c := w.start("b", "1", neverWarm), w.start("c", "1")
		time.Sleep(5 * time.Minute)
		w.wantServing("after minutes", 100, 156, a, c)
		failed := a.Health().Moves.TakenBack + c.Health().Moves.TakenBack
		time.Sleep(time.Hour)
		w.wantServing("after an hour", 100, 156, a, c)
		if n := a.Health().Moves.TakenBack + c.Health().Moves.TakenBack - failed; n < 4 || n > 8 {
			t.Errorf("%d hand-overs were tried in an hour", n)
		}
		b.set(recovers)
		time.Sleep(maxRetry + 5*time.Minute)
		w.wantServing("after the recovery", 68, 103, a, b, c)
		w.covered(a, b, c)
	})
}

// TestS5_AMemberThatNeverWarmsInheritsNothing while another one serves: the planner crashes, then a
// member joins, so that the one that never warms plans.
func TestS5_AMemberThatNeverWarmsInheritsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b, c := w.start("b", "1", neverWarm), w.start("c", "1")
		time.Sleep(5 * time.Minute)
		w.server.Inject(by("a", ""), apisim.Drop())
		time.Sleep(duration + 2*time.Second)
		w.wantServing("after the crash", Count-1, Count, c) // one may be on its way to b, as a trial
		d := w.start("d", "1")
		time.Sleep(5 * time.Minute)
		w.covered(c, d)
		w.wantServing("with another member", 100, 156, c, d)
		if h := c.Health(); b.Health().Owned != 0 || h.Covered != 1 {
			t.Errorf("b owns %d slots: %+v", b.Health().Owned, h)
		}
	})
}

// TestS5_AMemberThatInheritsWhileItFailsIsRelieved: it is alone for a while, and never warms.
func TestS5_AMemberThatInheritsWhileItFailsIsRelieved(t *testing.T) {
	bubble(t, func(w *world) {
		b := w.start("b", "1", neverWarm)
		time.Sleep(10 * time.Minute)
		if n := b.Health().Owned; n != Count {
			t.Fatalf("b owns %d slots", n)
		}
		c := w.start("c", "1")
		time.Sleep(5 * time.Second)
		w.wantServing("at once", Count/2, Count/2, c)
		w.wantBetween("the relief", w.covered(c), 0, c.tolerated())
		c.leave() // to b, as nobody else is there
		time.Sleep(time.Minute)
		d := w.start("d", "1")
		w.wantBetween("the second relief", w.covered(d), 0, 3*time.Minute)
	})
}

// TestS4_ANewVersionThatNeverWarmsIsRelieved: a member of the older version leaves, and another one
// serves all slots.
func TestS4_ANewVersionThatNeverWarmsIsRelieved(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		c := w.start("c", "2", neverWarm)
		time.Sleep(10 * time.Second)
		a.leave()
		w.wantBetween("the relief", w.covered(b), 0, 2*b.tolerated()+10*time.Second)
		time.Sleep(30 * time.Minute)
		w.wantServing("after half an hour", Count, Count, b)
		c.set(recovers)
		b.leave() // to the new version, as nobody else is there
		w.wantBetween("the take-over", w.covered(c), 0, duration)
	})
}

// TestS5_AnOwnerThatReportsNoSlotInOrderIsRelieved: it warms and drains, and serves no more. Trials take one
// slot. Once it reports in order, it gets its share within minutes.
func TestS5_AnOwnerThatReportsNoSlotInOrderIsRelieved(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		b.set(unready)
		time.Sleep(2*b.tolerated() - 5*time.Second)
		w.wantServing("while it may be late", 68, 103, a, b, c)
		time.Sleep(20 * time.Second)
		w.wantServing("once it is relieved", 0, 0, b)
		w.covered(a, c)
		relieved, got := time.Now(), b.Health().Moves.In
		for range 60 {
			time.Sleep(time.Minute)
			w.wantServing("later", 0, 1, b)
		}
		if n := b.Health().Moves.In - got; n > 10 {
			t.Errorf("b got %d slots in an hour", n)
		}
		if moves := w.moved(relieved); slices.Max(moves[:]) > 8 {
			t.Errorf("the slots moved %v times in an hour", moves)
		}
		b.set(recovers)
		time.Sleep(maxRetry + 5*time.Minute)
		w.wantServing("after the recovery", 68, 103, a, b, c)
		if h := a.Health(); h.Covered != 1 {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS5_NothingMovesWhileNoMemberServes, as when the server of a type of objects is down.
func TestS5_NothingMovesWhileNoMemberServes(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began := time.Now()
		for i, p := range []*process{b, a, c} {
			time.Sleep(time.Duration(i) * 10 * time.Second)
			p.set(unready)
		}
		time.Sleep(30 * time.Minute)
		for _, p := range []*process{a, b, c} {
			p.set(recovers)
		}
		time.Sleep(10 * time.Minute)
		w.covered(a, b, c)
		if moves := w.moved(began); slices.Max(moves[:]) > 0 || a.Health().Covered != 1 {
			t.Errorf("the slots moved %v times", moves)
		}
	})
}

// TestS5_ALateSlotStaysWithItsOwner, as it would be late elsewhere, too.
func TestS5_ALateSlotStaysWithItsOwner(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began := time.Now()
		b.set(func(p *process) {
			for n := range p.calls {
				if p.late.Len() < len(p.calls)-1 {
					p.late.Add(n)
				}
			}
		})
		time.Sleep(30 * time.Minute)
		w.covered(a, b, c)
		if moves := w.moved(began); slices.Max(moves[:]) > 0 {
			t.Errorf("the slots moved %v times", moves)
		}
	})
}

// TestS5_ASlotThatNobodyServesMovesRarely, and keeps no other slot from moving.
func TestS5_ASlotThatNobodyServesMovesRarely(t *testing.T) {
	bubble(t, func(w *world) {
		late := func(p *process) { p.late.Add(7) }
		a := w.start("a", "1", late)
		w.covered(a)
		b, c := w.start("b", "1", late), w.start("c", "1", late)
		time.Sleep(10 * time.Minute)
		w.wantServing("before", 68, 103, a, b, c)
		began := time.Now()
		time.Sleep(time.Hour)
		moves := w.moved(began)
		if n := moves[7]; n > 8 {
			t.Errorf("the slot moved %d times in an hour", n)
		}
		if moves[7] = 0; slices.Max(moves[:]) > 0 {
			t.Errorf("other slots moved %v times", moves)
		}
		d := w.start("d", "1", late)
		time.Sleep(5 * time.Minute)
		w.wantServing("with another member", 51, 77, a, b, c, d)
	})
}

// TestS5_AnOwnerThatDoesNotDrainIsRelievedOfNothing, and others hand over as usual.
func TestS5_AnOwnerThatDoesNotDrainIsRelievedOfNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		owned := b.serves()
		b.set(func(p *process) { p.unready, p.drainFor = true, 24*time.Hour })
		time.Sleep(time.Hour)
		w.wantServing("after an hour", owned, owned, b)
		if n := b.Health().Moves.TakenBack; n < uint64(owned) || n > uint64(10*owned) {
			t.Errorf("%d hand-overs of %d slots were taken back", n, owned)
		}
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 2*time.Second)
		w.wantServing("after the leave", Count-owned, Count-owned, c)
		b.set(func(p *process) { p.unready, p.drainFor = false, 0 })
	})
}

// TestS5_AControllerThatItsOwnerCannotPrepareIsLedByAnother, which gets others too.
func TestS5_AControllerThatItsOwnerCannotPrepareIsLedByAnother(t *testing.T) {
	bubble(t, func(w *world) {
		leads := func(p *process) { p.leads = []string{"x", "y", "z"} }
		a := w.start("a", "1", leads, func(p *process) { p.unprepared = "z" })
		w.covered(a)
		time.Sleep(5 * time.Minute)
		b := w.start("b", "1", leads)
		time.Sleep(3 * time.Minute)
		if h := a.Health(); h.Covered != 1 {
			t.Errorf("the health is %+v", h)
		}
		led := map[string]int{}
		for _, e := range b.Map()[Count:] {
			led[e.Owner]++
		}
		if n := led[a.Health().Identity]; n != 1 && n != 2 {
			t.Errorf("the owners are %v", led)
		}
	})
}

// TestS5_AMemberThatLeavesWhileNoMemberServesHandsItsSlotsOver, although these are moved for no other
// reason.
func TestS5_AMemberThatLeavesWhileNoMemberServesHandsItsSlotsOver(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			p.set(unready)
		}
		time.Sleep(10 * time.Minute)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 2*time.Second)
		w.covered(b, c)
	})
}

func TestS5_AMemberThatJoinsWhileNobodyServesGetsItsShare(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, p := range []*process{a, b, c} {
			p.set(unready)
		}
		time.Sleep(10 * time.Minute)
		d := w.start("d", "1", unready)
		time.Sleep(5 * time.Minute)
		w.wantServing("after the join", 1, Count/4, d)
		e := w.start("e", "1", unready)
		time.Sleep(5 * time.Minute)
		w.wantServing("after the next one", 1, Count/4, d, e)
	})
}

// TestS3_ACrashWhileSlotsMoveToAMemberThatFails: d never warms. Owners take their slots back. Another owner,
// whose slots are on their way to d too, has crashed.
func TestS3_ACrashWhileSlotsMoveToAMemberThatFails(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		d := w.start("d", "1", neverWarm)
		time.Sleep(27 * time.Second)
		moving := map[string]int{}
		for _, e := range c.Map() {
			if e.Next != "" {
				moving[e.Owner]++
			}
		}
		of := func(p *process) int { return moving[p.Health().Identity] }
		left := []*process{a, b, c}
		slices.SortFunc(left, func(x, y *process) int { return of(x) - of(y) })
		crashed, left := left[2], left[:2]
		if of(crashed) < 10 || of(left[1]) == 0 {
			t.Fatalf("%v slots move", moving)
		}
		w.server.Inject(by(crashed.name, ""), apisim.Drop())
		time.Sleep(duration + 2*time.Second)
		if n := left[0].Health().Moves.TakenBack + left[1].Health().Moves.TakenBack; n == 0 {
			t.Fatal("nothing was taken back")
		}
		if n := left[0].serves() + left[1].serves(); n < Count-1 {
			t.Errorf("the others serve %d slots, and d owns %d; %v moved to d", n, d.Health().Owned, moving)
		}
		time.Sleep(time.Minute)
		if n := left[0].serves() + left[1].serves(); n < Count-1 {
			t.Errorf("a minute later the others serve %d slots, and d owns %d", n, d.Health().Owned)
		}
	})
}

// TestS5_ADeadMemberThatCannotBeEndedKeepsNothingFromOneThatJoins: updates of its Lease are forbidden.
func TestS5_ADeadMemberThatCannotBeEndedKeepsNothingFromOneThatJoins(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.server.Inject(by("c", ""), apisim.Drop())
		dead := by("", "update")
		dead.Name = c.Health().Identity
		w.server.Inject(dead, apisim.Refuse(403, 0))
		time.Sleep(time.Minute)
		d := w.start("d", "1")
		time.Sleep(10 * time.Minute)
		if d.serves() == 0 {
			t.Errorf("after 10 minutes d serves no slots, a %d and b %d", a.serves(), b.serves())
		}
	})
}

// TestS4_AFixedVersionRelievesTheBrokenOne: no member of the older version serves, and one of the newer one
// joins.
func TestS4_AFixedVersionRelievesTheBrokenOne(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1"), w.start("b", "1")
		w.covered(a, b)
		a.set(unready)
		b.set(unready)
		time.Sleep(10 * time.Minute)
		c := w.start("c", "2")
		time.Sleep(30 * time.Minute)
		w.wantServing("half an hour after the join", 1, Count, c)
	})
}

// ledOut leads one controller, which is in order or not.
type ledOut struct {
	*process
	inOrder bool
}

func (p *ledOut) Controllers() map[string]bool {
	p.process.mu.Lock()
	defer p.process.mu.Unlock()
	return map[string]bool{"x": p.inOrder}
}

// startLed starts a process that can lead the controller x.
func (w *world) startLed(name string, inOrder bool) *ledOut {
	p := &process{w: w, name: name, warmFor: 50 * time.Millisecond, calls: map[int]*span{},
		logger: slog.New(slog.DiscardHandler), boot: func() time.Duration { return 0 }}
	l := &ledOut{p, inOrder}
	g, err := newGroup(leasetest.Config(w.server, name), l, Options{
		Namespace: "ops", Name: "rollout", Identity: name, Generation: "1", Logger: p.logger,
	})
	if err != nil {
		w.Fatal(err)
	}
	p.Group = g
	g.clock = lease.Clock{Boot: p.boot}
	ctx, stop := context.WithCancel(w.Context())
	p.stop = stop
	go g.run(ctx)
	w.Cleanup(func() { stop(); <-g.done })
	return l
}

// ownerOfX returns the owner of the controller x in the view of a process.
func ownerOfX(p *process) string {
	for _, e := range p.Map() {
		if e.Controller == "x" {
			return e.Owner
		}
	}
	return ""
}

// TestS5_AControllerIsRelievedWhileNoSlotIsServed: no member serves slots, as if a type could not be listed.
// The controller x, which does not need the type, fails in a alone.
func TestS5_AControllerIsRelievedWhileNoSlotIsServed(t *testing.T) {
	for name, slots := range map[string]bool{"slots in order": true, "no slot in order": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a := w.startLed("a", false)
				w.covered(a.process)
				b := w.startLed("b", true)
				if !slots {
					a.set(unready)
					b.set(unready)
				}
				time.Sleep(30 * time.Minute)
				if got := ownerOfX(a.process); got != b.Health().Identity {
					t.Errorf("x is with %s", got)
				}
			})
		})
	}
}
