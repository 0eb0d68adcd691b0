package shard

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// join has a fifth process join four that are balanced. It moves no more slots than needed and two,
// and nothing moves in the hour after.
func (w *world) join(needed, share int) {
	w.Helper()
	all := w.four(quiet)
	time.Sleep(45 * time.Minute) // for balancing by weight
	w.covered(all...)
	for _, p := range all {
		w.Logf("%s serves %d slots, with %d objects", p.name, p.serves(), w.sum(p))
	}
	joined := time.Now()
	e := w.start("e", "1", quiet)
	time.Sleep(5 * time.Minute)
	w.Logf("e serves %d slots, with %d objects", e.serves(), w.sum(e))
	w.covered(append(all, e)...)
	w.wantMoved("after the join", joined, needed+2, 1)
	if e.serves() == 0 || w.most(joined)["e"] > share {
		w.Errorf("e serves %d slots, and had %d, want at most %d", e.serves(), w.most(joined)["e"], share)
	}
	w.wantBetween("the longest gap", w.longestGap(joined), 0, time.Second)
	settled := time.Now()
	time.Sleep(time.Hour)
	w.wantMoved("in the hour after", settled, 0, 0)
}

// sum returns the number of objects of the slots that a process serves.
func (w *world) sum(p *process) (n int) {
	for i := range p.calls().Slots() {
		n += w.objectsOf(i)
	}
	return n
}

func TestS1_AFifthReplicaJoins(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(int) int { return 100 })
		w.join(50, 52)
	})
}

// TestS1_AFifthReplicaJoinsBesideALargeNamespace that has 40 % of the objects. Its owner has no
// other slot; of the others each has a third of the rest, and later a fourth.
func TestS1_AFifthReplicaJoinsBesideALargeNamespace(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(n int) int {
			if n == 7 {
				return 10_000
			}
			return 59
		})
		w.join(64, 64)
	})
}

// TestS1_AFifthReplicaJoinsBesideHeavySlots: twelve have most of the objects, three on each member.
// The fifth gets three, and from the one that has given none as many others as bring that near its
// share.
func TestS1_AFifthReplicaJoinsBesideHeavySlots(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(n int) int {
			if n < 12 {
				return 999
			}
			return 20
		})
		w.join(28, 75)
	})
}

// steady has four processes for three hours beside bursts, for five of every ten minutes.
func (w *world) steady(burst func(all []*process, isBurst bool)) {
	w.Helper()
	all := w.four(quiet)
	time.Sleep(30 * time.Minute)
	began := time.Now()
	for minute := range 180 {
		burst(all, minute%10 < 5)
		time.Sleep(time.Minute)
	}
	w.wantMoved("in three hours", began, 0, 0)
	w.covered(all...)
	if h := all[0].Health(); h.Covered != 1 || h.Moving != 0 {
		w.Errorf("the health is %+v", h)
	}
}

// TestS1_BurstsOfObjectsMoveNothing: namespaces with jobs fill and empty.
func TestS1_BurstsOfObjectsMoveNothing(t *testing.T) {
	for name, slots := range map[string][]int{"one slot": {7}, "two in turn": {7, 250}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.weigh(func(int) int { return 100 })
				w.steady(func(_ []*process, isBurst bool) {
					w.weigh(func(n int) int {
						if n == slots[0] && isBurst || len(slots) > 1 && n == slots[1] && !isBurst {
							return 6000
						}
						return 100
					})
				})
			})
		})
	}
}

// TestS1_BurstsOfCallsMoveNothing: calls of a minute, one after the other, and keys that wait.
func TestS1_BurstsOfCallsMoveNothing(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(int) int { return 100 })
		w.steady(func(all []*process, isBurst bool) {
			p := all[1]
			calls := p.calls()
			if !isBurst {
				calls = Set{}
			}
			p.call(calls, time.Minute)
			p.set(func(p *process) { p.work.Late = calls })
		})
	})
}

// TestS1_BusyMembersKeepTheirSlots: all slots of two members have calls and keys that wait, for
// hours, and one has calls that take longer.
func TestS1_BusyMembersKeepTheirSlots(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		time.Sleep(time.Minute)
		began := time.Now()
		for range 360 {
			for p, d := range map[*process]time.Duration{a: 20 * time.Second, b: 16 * time.Second} {
				p.call(p.calls(), d)
				p.set(func(p *process) { p.work.Late = allSlots })
			}
			time.Sleep(20 * time.Second)
		}
		w.wantMoved("in two hours", began, 0, 0)
		if h := a.Health(); h.Covered != 1 || h.Late != "0-255" || h.LateFor < 110*time.Minute {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_AColdStart has eight replicas that start at once, or one after the other. No one holds the
// objects of all.
func TestS1_AColdStart(t *testing.T) {
	for _, apart := range []time.Duration{0, 3 * time.Second} {
		t.Run(apart.String(), func(t *testing.T) {
			bubble(t, func(w *world) {
				began := time.Now()
				var all []*process
				for i := range 8 {
					all = append(all, w.start(fmt.Sprint("p", i), "1", taking(2*time.Second)))
					time.Sleep(apart)
				}
				w.covered(all...)
				w.wantBetween("the start", time.Since(began), 0, 45*time.Second)
				time.Sleep(10 * time.Minute)
				w.wantMost("at the start", began, 64)
				w.wantServing("after the start", 26, 39, all...)
				w.wantMoved("the start", began, Count+Count/8, 2)
			})
		})
	}
}

// TestS1_AColdStartWithASlowMember: the member that makes the map is slow to say that it acts on
// it. The other one gets half.
func TestS1_AColdStartWithASlowMember(t *testing.T) {
	for _, slow := range []string{"a", "b"} {
		t.Run(slow, func(t *testing.T) {
			bubble(t, func(w *world) {
				began := time.Now()
				w.server.Inject(by(slow, "update"), apisim.Delay(300*time.Millisecond))
				a, b := w.start("a", "1"), w.start("b", "1")
				w.covered(a, b)
				w.wantMost("at the start", began, Count/2+1)
			})
		})
	}
}

// TestS1_OneSlotHasAllObjects: its owner has no other one, and nothing moves to and fro.
func TestS1_OneSlotHasAllObjects(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(n int) int {
			if n == 7 {
				return 1_000_000
			}
			return 0
		})
		a, b, c := w.three()
		time.Sleep(30 * time.Minute)
		w.covered(a, b, c)
		settled := time.Now()
		time.Sleep(2 * time.Hour)
		w.wantMoved("in two hours", settled, 0, 0)
		for _, p := range []*process{a, b, c} {
			if p.calls().Has(7) && p.serves() > 1 || !p.calls().Has(7) && p.serves() < 100 {
				t.Errorf("%s serves %v", p.name, p.calls())
			}
		}
	})
}

// TestS1_WeightMovesSlotsOnce: the objects of some slots of one member have become many.
func TestS1_WeightMovesSlotsOnce(t *testing.T) {
	bubble(t, func(w *world) {
		w.weigh(func(int) int { return 100 })
		all := w.four()
		grown := all[2].calls()
		time.Sleep(10 * time.Minute)
		began := time.Now()
		w.weigh(func(n int) int {
			if grown.Has(n) {
				return 200
			}
			return 100
		})
		time.Sleep(9 * time.Minute)
		w.wantMoved("within ten minutes", began, 0, 0)
		time.Sleep(51 * time.Minute)
		w.covered(all...)
		w.wantMoved("within an hour", began, 64, 1)
		for _, p := range all {
			if n := w.sum(p); n < 8000*8/10 || n > 8000*12/10 {
				t.Errorf("%s has %d objects, of 32,000", p.name, n)
			}
		}
	})
}

// TestS1_MembersThatComeTogetherAreOne: two join at once, and each slot moves once.
func TestS1_MembersThatComeTogetherAreOne(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		time.Sleep(time.Minute)
		joined := time.Now()
		c := w.start("c", "1")
		time.Sleep(3 * time.Second)
		d := w.start("d", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b, c, d)
		w.wantMoved("two joins", joined, Count/2+2, 1)
		w.wantMost("two joins", joined, Count/2)
		if n := w.most(joined)["c"]; n > 65 {
			t.Errorf("c had %d slots", n)
		}
		w.wantServing("two joins", 52, 77, a, b, c, d)
	})
}

// TestS1_AMemberThatCrashesWheneverItGetsSlots is not the heir of its own slots for long.
func TestS1_AMemberThatCrashesWheneverItGetsSlots(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		began := time.Now()
		for i := range 12 { // two minutes each
			d := w.start(fmt.Sprintf("again-%02d", i), "1")
			for n := 0; d.serves() == 0 && n < 100; n++ {
				time.Sleep(time.Second)
			}
			d.crash()
			time.Sleep(20 * time.Second)
			w.covered(a, b, c)
		}
		t.Logf("%d moves in %v", w.moves(began), time.Since(began))
		if took := time.Since(began); w.moves(began) > 2*64*int(took/(5*time.Minute)+2) {
			t.Errorf("%d moves in %v", w.moves(began), took)
		}
	})
}
