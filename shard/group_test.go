package shard

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

func TestS1_MembersShareAllSlots(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.wantBetween("the first owner", w.covered(a), 5*time.Second, 6*time.Second)
		began := time.Now()
		b, c := w.start("b", "1"), w.start("c", "1")
		time.Sleep(time.Minute)
		w.wantServing("after a minute", 76, 95, a, b, c)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		h := a.Health()
		if h.Covered != 1 || h.Moving != 0 || len(h.Members) != 3 || h.Planner != a.Health().Identity ||
			h.State != Member || h.LastError != nil {
			t.Errorf("the health is %+v", h)
		}
		for _, m := range h.Members {
			if !m.Live || m.Does != "takes" || m.Joining || m.Refused || m.Slots != int(m.Weight) {
				t.Errorf("the member is %+v", m)
			}
		}
	})
}

// TestS1_AJoinMovesEachSlotOnce has a member that joins while the weights are not known.
func TestS1_AJoinMovesEachSlotOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(int) int { return 10 })
		a := w.start("a", "1", unready)
		w.covered(a)
		joined := time.Now()
		b := w.start("b", "1")
		time.Sleep(time.Minute)
		w.wantMoved("a minute after the join", joined, Count/2, 1)
		w.wantServing("a minute after the join", 115, 128, b)
	})
}

func TestS3_TheSlotsOfACrashedMemberAreTakenInTime(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, crashed := range []*process{a, b} { // the planner, and then another
			at := time.Now()
			crashed.crash()
			left := []*process{b, c}
			if crashed == b {
				left = []*process{c}
			}
			w.wantBetween("the take-over", w.covered(left...), duration*2/3, takeOverBound)
			for _, spans := range w.all() {
				for _, s := range spans {
					if s.begin.After(at) && s.versions != nil {
						t.Fatalf("slot %d comes with the versions %v after a crash", s.entry, s.versions)
					}
				}
			}
		}
	})
}

func TestS3_ACrashWithShortLeases(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four(shortLeases)
		crashed := time.Now()
		all[0].crash()
		w.covered(all[1:]...)
		w.wantBetween("the take-over", time.Since(crashed), 3*time.Second, 7*time.Second)
	})
}

// TestS3_AMemberWithoutAnAnswerInheritsNothing has a process that loses its membership and joins
// again, but receives no answer: another member crashes before the new Lease has run out.
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
		a.crash()
		w.covered(b)
		w.wantBetween("the take-over", time.Since(crashed), duration/2, takeOverBound)
	})
}

// TestS3_APausedMemberCallsNothing delays all requests of a process and their answers, as if it had
// been paused, for longer than its Lease. It joins anew, and gets its share.
func TestS3_APausedMemberCallsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		before := b.Health().Identity
		pause := w.server.Inject(by("b", ""), apisim.Delay(time.Minute))
		w.wantBetween("the take-over", w.covered(a, c), duration*2/3, takeOverBound)
		w.wantServing("paused", 0, 0, b)
		time.Sleep(30 * time.Second)
		pause.Lift()
		time.Sleep(5 * time.Minute)
		w.wantServing("later", 76, 95, b)
		if h := b.Health(); h.State != Member || h.Identity == before {
			t.Errorf("the health is %+v", h)
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
		c.crash()
		w.wantBetween("the take-over", w.covered(a, b), duration/2, takeOverBound)
	})
}

func TestS3_ADeletedLeaseEndsItsMemberAndIsHeldByOthers(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		identity := b.Health().Identity
		w.server.Inject(by("b", "create"), apisim.Refuse(http.StatusInternalServerError, 0))
		w.server.Inject(by("b", "update"), apisim.Refuse(http.StatusInternalServerError, 0))
		w.remove(identity)
		synctest.Wait()
		if b.serves() != 0 || !errors.Is(b.terms[0].Err(), lease.ErrDeleted) {
			t.Errorf("b serves %d slots, its term is %v", b.serves(), b.terms[0].Err())
		}
		w.wantBetween("the take-over", w.covered(a, c), duration, takeOverBound)
	})
}

// TestS3_ABlockedMemberLosesItsLease has a process in which a loop hangs: its Lease is not renewed.
func TestS3_ABlockedMemberLosesItsLease(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		blocked := errors.New("the dispatcher of counter hangs")
		at := time.Now()
		b.set(func(p *process) { p.work.Blocked = blocked })
		// Its term closes at 4/5 of the duration after the last renewal.
		w.wantBetween("the take-over", w.covered(a, c), duration*4/5-5*time.Second, takeOverBound)
		w.wantServing("while it hangs", 0, 0, b)
		b.set(recovers)
		time.Sleep(7 * time.Minute) // a receiver that has crashed gets nothing for five minutes
		w.covered(a, b, c)
		w.wantServing("later", 76, 95, a, b, c)
		w.wantBetween("the longest gap", w.longestGap(at), 0, takeOverBound)
	})
}

func TestS1_ADeletedMapEndsAllMembersAndIsMadeAnew(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.server.Inject(by("c", ""), apisim.Delay(time.Hour)) // c does not notice the loss
		w.remove("rollout")
		w.restored = true // epochs begin again
		w.wantBetween("the new map", w.covered(a, b), duration*2/3, duration+5*time.Second)
		if c.serves() != 0 || a.terms[0].Err() == nil || b.terms[0].Err() == nil {
			t.Errorf("c serves %d slots, the terms are %v, %v", c.serves(), a.terms[0].Err(), b.terms[0].Err())
		}
	})
}

func TestS5_EntriesWithoutCallsAreNamedByEachMember(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		count := func(cover Cover) (n int) {
			for _, e := range a.Map() {
				if e.Cover == cover {
					n++
				}
			}
			return n
		}
		owned := c.serves()
		c.set(func(p *process) {
			p.unready, p.work.Reasons = true, map[string]Set{"pods cannot be listed": allSlots}
		})
		time.Sleep(6 * time.Second)
		h := a.Health()
		if h.NotReady == "" || h.Nobody != "" || count(NotReady) != owned || count(Nobody) != 0 ||
			h.Covered != float64(Count-owned)/Count {
			t.Errorf("c is not ready: %+v", h)
		}
		for _, e := range a.Map() {
			if e.Cover == NotReady && (e.Reason != "pods cannot be listed" || e.CoverFor > 6*time.Second) {
				t.Fatalf("the entry is %+v", e)
			}
		}
		c.set(recovers)
		b.crash()
		nobody := 0
		for a.serves()+c.serves() < Count {
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			nobody = max(nobody, count(Nobody))
		}
		time.Sleep(6 * time.Second)
		h = a.Health()
		if h.Covered != 1 || h.Nobody != "" || h.NotReady != "" || h.UncoveredFor != 0 {
			t.Errorf("after %d had nobody: %+v", nobody, h)
		}
		late := c.calls()
		c.set(func(p *process) { p.work.Late = late })
		time.Sleep(10 * time.Second)
		h = a.Health()
		if h.Covered != 1 || h.Late != late.String() || count(Late) != late.Len() {
			t.Errorf("c is late: %+v", h)
		}
		w.wantBetween("late", h.LateFor, 4*time.Second, 10*time.Second)
		if h.Tolerated != 45*time.Second {
			t.Errorf("tolerated are %v", h.Tolerated)
		}
	})
}

// TestS5_NobodyIsShownWhileNobodyLives: the owner has crashed, and the process that looks cannot
// become a member.
func TestS5_NobodyIsShownWhileNobodyLives(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(by("b", "create"), apisim.Refuse(403, 0))
		b := w.start("b", "1")
		time.Sleep(time.Second)
		if h := b.Health(); h.Covered != 0 || h.Nobody != "0-255" {
			t.Errorf("without a map: %+v", h)
		}
		a := w.start("a", "1")
		w.covered(a)
		time.Sleep(6 * time.Second)
		h := b.Health()
		if h.Covered != 1 || h.UncoveredFor != 0 || len(h.Members) != 1 || h.State != Joining {
			t.Errorf("with a member: %+v", h)
		}
		a.crash()
		time.Sleep(duration + time.Second + time.Minute)
		h = b.Health()
		// The last renewal was sent up to a period before the first that was dropped.
		w.wantBetween("uncovered", h.UncoveredFor, time.Minute, time.Minute+7*time.Second)
		if len(h.Members) != 1 || h.Members[0].Live || h.Members[0].Slots != Count {
			t.Errorf("the members are %+v", h.Members)
		}
		for _, e := range b.Map() {
			if e.Cover != Nobody || e.CoverFor != h.UncoveredFor {
				t.Fatalf("the entry is %+v", e)
			}
		}
	})
}
