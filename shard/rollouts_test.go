package shard

import (
	"fmt"
	"testing"
	"time"
)

// rollout replaces processes one after the other by those of a generation, and returns the new
// ones. With surge each new one joins before an old one leaves; pause is the time after each step.
func (w *world) rollout(old []*process, generation string, surge bool, pause time.Duration) (replaced []*process) {
	w.Helper()
	for i, p := range old {
		start := func() {
			name := fmt.Sprintf("new%s-%d-of-%d", generation, i, len(old))
			replaced = append(replaced, w.start(name, generation, quiet))
			time.Sleep(pause)
		}
		if surge {
			start()
		}
		p.leave()
		time.Sleep(pause)
		if !surge {
			start()
		}
	}
	return replaced
}

// wantStill checks that the processes serve all slots evenly, and that nothing moves in two hours.
func (w *world) wantStill(processes []*process) {
	w.Helper()
	w.covered(processes...)
	share := Count / len(processes)
	w.wantServing("after the update", share*8/10, share*12/10+1, processes...)
	after := time.Now()
	time.Sleep(2 * time.Hour)
	w.wantMoved("two hours after the update", after, 0, 0)
}

func TestS4_WithSurgeEachSlotMovesOnce(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		replaced := w.rollout(all, "2", true, 20*time.Second)
		moves := w.moved(began)
		for n, times := range moves {
			if times != 1 {
				t.Errorf("slot %d moved %d times", n, times)
			}
		}
		w.wantMost("with surge", began, Count/4+1)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		w.wantStill(replaced)
	})
}

func TestS4_WithoutSurgeEachSlotMovesAtMostTwice(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		replaced := w.rollout(all, "2", false, 20*time.Second)
		time.Sleep(time.Minute)
		w.wantMoved("without surge", began, 2*Count, 2)
		w.wantMost("without surge", began, Count/3+2)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		w.wantStill(replaced)
	})
}

// TestS4_AContainerOfTheOlderVersionRestarts during the update: it is killed, and comes back with
// the older generation.
func TestS4_AContainerOfTheOlderVersionRestarts(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		time.Sleep(10 * time.Minute)
		began := time.Now()
		replaced := w.rollout(all[:1], "2", true, 20*time.Second)
		all[1].crash()
		time.Sleep(2 * time.Second)
		all[1] = w.start("old", "1")
		time.Sleep(time.Minute)
		replaced = append(replaced, w.rollout(all[1:], "2", true, 20*time.Second)...)
		w.wantMoved("with a crash", began, Count+Count/4, 2)
		w.wantMost("with a crash", began, Count/4+1)
		w.wantBetween("the longest gap", w.longestGap(began), 0, takeOverBound)
		w.wantStill(replaced)
	})
}

// TestS4_ARollback turns an update round in its middle.
func TestS4_ARollback(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		replaced := w.rollout(all[:2], "2", true, 20*time.Second)
		back := append(w.rollout(replaced, "1", true, 20*time.Second), all[2:]...)
		w.wantMoved("with a rollback", began, Count, 2)
		w.wantMost("with a rollback", began, Count/4+1)
		w.wantBetween("the longest gap", w.longestGap(began), 0, time.Second)
		w.wantStill(back)
	})
}

// TestS4_JoinsMoveNothingWhileTwoGenerationsLive, as beside a canary: half an hour after the last
// join they count as one.
func TestS4_JoinsMoveNothingWhileTwoGenerationsLive(t *testing.T) {
	bubble(t, func(w *world) {
		all := w.four()
		began := time.Now()
		canary := w.start("canary", "2")
		time.Sleep(29 * time.Minute)
		w.wantMoved("beside a canary", began, 0, 0)
		time.Sleep(2 * time.Minute)
		w.covered(append(all, canary)...)
		w.wantServing("half an hour later", 45, 52, canary)
		w.wantMoved("half an hour later", began, 52, 1)
	})
}

func TestS4_AMemberThatLeavesWaitsForItsCalls(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		a.call(allSlots, 5*time.Second)
		at := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(at), 5*time.Second, 12*time.Second)
		w.covered(b)
		w.wantBetween("the longest gap", w.longestGap(at), 0, time.Second)
		if err := a.terms[0].Err(); err == nil {
			t.Errorf("its term is %v", err)
		}
		if !a.aborted.IsEmpty() {
			t.Errorf("the contexts of the calls of %v ended", a.aborted)
		}
	})
}

func TestS4_TheLastMemberLeavesAtOnceAndTheNextOneTakesAtOnce(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		a.call(allSlots, 10*time.Second)
		at := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(at), 0, time.Second)
		w.wantBetween("the next owner", w.covered(w.start("b", "1")), 0, time.Second)
		if len(a.left) != 1 || a.left[0] != nil || a.aborted.Len() != Count {
			t.Errorf("a left with %v, and %v were aborted", a.left, a.aborted)
		}
	})
}
