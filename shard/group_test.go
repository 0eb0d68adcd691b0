package shard

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/lease/leasetest"
)

func TestS1_MembersShareAllSlots(t *testing.T) {
	bubble(t, func(w *world) {
		began := time.Now()
		a := w.start("a", "1")
		w.wantBetween("the first owner", w.covered(a), 0, time.Second)
		b, c := w.start("b", "1"), w.start("c", "1")
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		for _, p := range []*process{a, b, c} {
			if n := p.serves(); n < 68 || n > 103 {
				t.Errorf("%s serves %d slots", p.name, n)
			}
		}
		w.wantBetween("the longest gap", w.longestGap(began.Add(time.Second)), 0, time.Second)
		h := a.Health()
		if h.Covered != 1 || h.Moving != 0 || len(h.Members) != 3 || h.Planner != a.Health().Identity ||
			h.State != Member || h.Moves.TakenBack != 0 || h.LastError != nil {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_AJoinMovesEachSlotOnce has a member that joins while the load of the other one is not known.
func TestS1_AJoinMovesEachSlotOnce(t *testing.T) {
	bubble(t, func(w *world) {
		loaded := func(p *process) {
			for n := range p.loads {
				p.loads[n] = 10
			}
		}
		a := w.start("a", "1", loaded, func(p *process) { p.unready = true })
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1", loaded)
		time.Sleep(time.Minute)
		if moves := w.moved(joined); slices.Max(moves[:]) > 1 || b.serves() != Count/4 {
			t.Errorf("b serves %d slots; the slots moved %v times", b.serves(), moves)
		}
	})
}

func TestS2_AHandOverWaitsForCallsAndGivesTheirVersions(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 4 * time.Second })
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(4 * time.Minute)
		if n := b.serves(); n < 50 {
			t.Fatalf("b serves %d slots", n)
		}
		for slot := range Count {
			if spans := w.of(slot); len(spans) == 2 && spans[1].versions["pods"] != "a" {
				t.Errorf("slot %d comes with the versions %v", slot, spans[1].versions)
			}
		}
		// Calls run for 4 s, in which the slot is owned and no new calls begin.
		w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
	})
}

func TestS2_AHandOverThatIsNotReadyIsTakenBack(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "1", func(p *process) { p.neverWarm = true })
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if h := a.Health(); h.Moves.TakenBack != Count/4 || h.Moves.Out != 0 || a.serves() != Count || b.serves() != 0 {
			t.Errorf("a serves %d slots, b %d: %+v", a.serves(), b.serves(), h)
		}
	})
}

func TestS2_ADrainThatTakesLongIsTakenBackAndServedAgain(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = time.Hour })
		w.covered(a)
		joined := time.Now()
		w.start("b", "1")
		time.Sleep(50 * time.Second)
		synctest.Wait()
		if h := a.Health(); h.Moves.TakenBack != Count/4 || a.serves() != Count || h.Serving != Count {
			t.Errorf("a serves %d slots: %+v", a.serves(), h)
		}
		w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
		a.mu.Lock()
		a.drainFor = 0
		a.mu.Unlock()
	})
}

// three starts processes and waits until they share the slots.
func (w *world) three() (a, b, c *process) {
	w.Helper()
	a, b, c = w.start("a", "1"), w.start("b", "1"), w.start("c", "1")
	time.Sleep(5 * time.Minute)
	w.covered(a, b, c)
	return a, b, c
}

func TestS3_TheSlotsOfACrashedMemberAreTakenInTime(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, crashed := range []*process{a, b} { // the planner, and then another
			at := time.Now()
			w.server.Inject(by(crashed.name, ""), apisim.Drop())
			left := []*process{b, c}
			if crashed == b {
				left = []*process{c}
			}
			w.wantBetween("the take-over", w.covered(left...), duration*2/3, duration+2*time.Second)
			for slot := range Count {
				for _, s := range w.of(slot) {
					if s.begin.After(at) && s.versions != nil {
						t.Fatalf("slot %d comes with the versions %v after a crash", slot, s.versions)
					}
				}
			}
		}
	})
}

// TestS3_AMemberWithoutAnAnswerInheritsNothing has a process that loses its membership and joins again,
// but receives no answer: another member crashes before the new Lease has run out.
func TestS3_AMemberWithoutAnAnswerInheritsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, _ := w.three()
		for verb, fault := range map[string]apisim.Fault{
			"update": apisim.Drop(), "create": apisim.Stall(0, time.Hour),
		} {
			w.server.Inject(by("c", verb), fault)
		}
		time.Sleep(duration + time.Second)
		w.covered(a, b)
		crashed := time.Now()
		w.server.Inject(by("a", ""), apisim.Drop())
		w.covered(b)
		w.wantBetween("the take-over", time.Since(crashed), duration/2, duration+2*time.Second)
	})
}

// TestS3_APausedMemberCallsNothing delays all requests of a process and their answers, as if it
// had been paused, for longer than its Lease.
func TestS3_APausedMemberCallsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		before := b.Health().Identity
		pause := w.server.Inject(by("b", ""), apisim.Delay(time.Minute))
		w.wantBetween("the take-over", w.covered(a, c), duration*2/3, duration+2*time.Second)
		if b.serves() != 0 {
			t.Errorf("b still serves %d slots", b.serves())
		}
		time.Sleep(30 * time.Second)
		pause.Lift()
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if h := b.Health(); h.State != Member || h.Identity == before || b.serves() < 50 {
			t.Errorf("b serves %d slots: %+v", b.serves(), h)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if first := b.terms[0]; first.Err() == nil || first.Remaining() != 0 || len(b.terms) < 2 {
			t.Errorf("b has %d terms, and the first one is %v", len(b.terms), first.Err())
		}
	})
}

func TestS3_ALateRenewalDoesNotReopenATerm(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		pause := w.server.Inject(by("a", "update"), apisim.Delay(13*time.Second))
		time.Sleep(20 * time.Second)
		pause.Lift()
		w.covered(a)
		a.mu.Lock()
		defer a.mu.Unlock()
		if len(a.terms) != 2 || !errors.Is(a.terms[0].Err(), lease.ErrDeadline) {
			t.Errorf("a has %d terms, and the first one is %v", len(a.terms), a.terms[0].Err())
		}
	})
}

// TestS3_ClocksOfDifferentSpeed has a member whose clock gains a tenth, and one that is 30 s ahead.
func TestS3_ClocksOfDifferentSpeed(t *testing.T) {
	bubble(t, func(w *world) {
		began := time.Now()
		fast := func(p *process) { p.boot = func() time.Duration { return time.Since(began) * 11 / 10 } }
		ahead := func(p *process) { p.boot = func() time.Duration { return time.Since(began) + 30*time.Second } }
		a, b, c := w.start("a", "1", fast), w.start("b", "1", ahead), w.start("c", "1")
		time.Sleep(10 * time.Minute)
		w.covered(a, b, c)
		for _, p := range []*process{a, b, c} {
			if len(p.terms) != 1 {
				t.Errorf("%s has %d terms", p.name, len(p.terms))
			}
		}
		w.server.Inject(by("c", ""), apisim.Drop())
		w.wantBetween("the take-over", w.covered(a, b), duration/2, duration+2*time.Second)
	})
}

func TestS3_ADeletedLeaseEndsItsMemberAndIsHeldByOthers(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		identity := b.Health().Identity
		w.server.Inject(by("b", "create"), apisim.Refuse(http.StatusInternalServerError, 0))
		w.server.Inject(by("b", "update"), apisim.Refuse(http.StatusInternalServerError, 0))
		if _, err := w.server.Delete(t.Context(), leaseResource, "ops", identity); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if b.serves() != 0 || !errors.Is(b.terms[0].Err(), lease.ErrDeleted) {
			t.Errorf("b serves %d slots, its term is %v", b.serves(), b.terms[0].Err())
		}
		w.wantBetween("the take-over", w.covered(a, c), duration, duration+2*time.Second)
	})
}

func TestS1_ADeletedMapEndsAllMembersAndIsMadeAnew(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.server.Inject(by("c", ""), apisim.Delay(time.Hour)) // c does not notice the loss
		if _, err := w.server.Delete(t.Context(), leaseResource, "ops", "rollout"); err != nil {
			t.Fatal(err)
		}
		w.wantBetween("the new map", w.covered(a, b), duration*2/3, duration+3*time.Second)
		if c.serves() != 0 || a.terms[0].Err() == nil || b.terms[0].Err() == nil {
			t.Errorf("c serves %d slots, the terms are %v, %v", c.serves(), a.terms[0].Err(), b.terms[0].Err())
		}
		w.mu.Lock()
		w.spans = nil // epochs begin again at 1
		w.mu.Unlock()
	})
}

func TestS4_WithSurgeEachSlotMovesOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began := time.Now()
		var replaced []*process
		for i, old := range []*process{a, b, c} {
			replaced = append(replaced, w.start("new"+string(rune('a'+i)), "2"))
			time.Sleep(10 * time.Second)
			old.leave()
			time.Sleep(10 * time.Second)
		}
		time.Sleep(5 * time.Minute)
		w.covered(replaced...)
		if moves := w.moved(began); slices.Max(moves[:]) != 1 || slices.Min(moves[:]) != 1 {
			t.Errorf("the slots moved %v times", moves)
		}
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
	})
}

func TestS4_WithoutSurgeEachSlotMovesAtMostTwice(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began := time.Now()
		var replaced []*process
		for i, old := range []*process{a, b, c} {
			old.leave()
			time.Sleep(10 * time.Second)
			replaced = append(replaced, w.start("new"+string(rune('a'+i)), "2"))
			time.Sleep(10 * time.Second)
		}
		time.Sleep(10 * time.Minute)
		w.covered(replaced...)
		if moves := w.moved(began); slices.Max(moves[:]) > 2 {
			t.Errorf("the slots moved %v times", moves)
		}
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
	})
}

func TestS4_AMemberThatLeavesWaitsForItsCalls(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = 5 * time.Second })
		w.covered(a)
		b := w.start("b", "1")
		time.Sleep(2 * time.Second)
		at := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(at), 5*time.Second, 7*time.Second)
		w.covered(b)
		w.wantBetween("the longest gap", w.longestGap(at), 0, time.Second)
		if err := a.terms[0].Err(); !errors.Is(err, errLeft) {
			t.Errorf("its term is %v", err)
		}
	})
}

func TestS4_TheLastMemberLeavesAtOnceAndTheNextOneTakesAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		at := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(at), 0, time.Second)
		w.wantBetween("the next owner", w.covered(w.start("b", "1")), 0, time.Second)
	})
}

func TestS4_CallsThatDoNotReturnAreAnErrorAndKeepTheLease(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", func(p *process) { p.drainFor = time.Hour })
		w.covered(a)
		a.stop()
		if err := a.Wait(); !errors.Is(err, ErrStragglers) {
			t.Errorf("the error is %v", err)
		}
		w.wantBetween("the next owner", w.covered(w.start("b", "1")), duration*2/3, duration+2*time.Second)
	})
}

func TestS5_UncoveredSlotsAreNamedByEachMember(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.server.Inject(by("b", ""), apisim.Drop())
		time.Sleep(duration - 2*time.Second)
		c.mu.Lock()
		c.warm = Set{} // c reports no slots in order
		c.mu.Unlock()
		time.Sleep(6 * time.Second)
		h := a.Health()
		if h.Covered > 0.8 || h.Covered < 0.2 || h.Uncovered == "" {
			t.Errorf("the health is %+v", h)
		}
		uncovered := 0
		for _, e := range a.Map() {
			if !e.Covered {
				uncovered++
			}
		}
		if uncovered != Count-int(h.Covered*Count+0.5) {
			t.Errorf("the map has %d slots uncovered, health %v", uncovered, h.Covered)
		}
		c.mu.Lock()
		c.warm = allSlots()
		c.mu.Unlock()
		time.Sleep(6 * time.Second)
		if h := a.Health(); h.Covered != 1 || h.Uncovered != "" {
			t.Errorf("the health is %+v", h)
		}
		_ = b
	})
}

func TestS7_AQuietGroupWritesOneLeasePerMemberAndFiveSeconds(t *testing.T) {
	bubble(t, func(w *world) {
		w.three()
		time.Sleep(2 * time.Minute)
		before := len(w.server.Requests().Of(by("", "update")))
		version := w.lease("rollout").ResourceVersion
		time.Sleep(time.Minute)
		if n := len(w.server.Requests().Of(by("", "update"))) - before; n < 34 || n > 39 {
			t.Errorf("%d writes in a minute, want 36", n)
		}
		if w.lease("rollout").ResourceVersion != version {
			t.Error("the map was written, and nothing moved")
		}
		if text := w.lease("rollout").Annotations[entriesAnnotation]; len(text) > 4<<10 {
			t.Errorf("the map has %d bytes", len(text))
		}
	})
}

func TestS7_LeasesOfEndedMembersAreDeleted(t *testing.T) {
	bubble(t, func(w *world) {
		_, b, _ := w.three()
		b.leave()
		time.Sleep(time.Minute)
		list, _, err := w.server.List(t.Context(), leaseResource, "ops")
		if err != nil || len(list) != 3 { // two members and the map
			t.Errorf("%d Leases are left, %v", len(list), err)
		}
	})
}

// lease returns a stored Lease.
func (w *world) lease(name string) *coordinationv1.Lease {
	w.Helper()
	return leasetest.Get(w.T, w.server, name)
}
