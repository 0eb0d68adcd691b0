package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS2_RunsOfATable: Run runs once at a time, and says what has become of the last one.
func TestS2_RunsOfATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, cause := newShare(NewSlots(ByNamespace), entries.Divided), errors.New("an informer has stopped")
		state := func(runs, isOver bool, failure error) {
			t.Helper()
			if r, o, f := ours.state(); r != runs || o != isOver || f != failure {
				t.Errorf("it runs: %v, is over: %v, with %v", r, o, f)
			}
		}
		state(false, false, nil)
		ours.group.stay.claim()
		proceed, ended := make(chan error), make(chan error, 1)
		go func() {
			ended <- ours.run(t.Context(), func(context.Context) error { return <-proceed })
		}()
		synctest.Wait()
		state(true, false, nil)
		if err := ours.run(t.Context(), nil); err != ErrRunning {
			t.Errorf("a second run: %v", err)
		}
		state(true, false, nil)
		proceed <- cause
		synctest.Wait()
		state(false, true, cause)
		if err := ours.run(t.Context(), nil); err != ErrRunning {
			t.Errorf("a second run before the group was left: %v", err)
		}
		ours.group.Left(errors.New("the group has an error too"))
		if err := <-ended; err != cause {
			t.Errorf("it ends with %v", err)
		}
	})
}

// fakeWork is a controller of tests, which works as f says.
type fakeWork struct {
	member
	f func(*work)
}

func (f fakeWork) report(w *work) { f.f(w) }

// TestS3_TurnsOfAGoroutine: one that is at the same odd turn for a minute stands still.
func TestS3_TurnsOfAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, turn := NewSlots(ByNamespace), uint64(0)
		s.members = []member{fakeWork{f: func(w *work) { w.turns("a run", turn, "controller %q", "x") }}}
		check := func(after time.Duration, next uint64, want string) {
			t.Helper()
			time.Sleep(after)
			turn = next
			if got := errorText(s.Work().Blocked); got != want {
				t.Errorf("at turn %d it is blocked: %q, want %q", turn, got, want)
			}
		}
		check(0, 0, "")
		check(time.Hour, 0, "") // it does not run
		check(0, 1, "")
		check(59*time.Second, 1, "")
		check(time.Second, 3, "")
		check(59*time.Second, 3, "")
		check(time.Second, 3, `controller "x" has not turned for 1m0s`)
		check(time.Minute, 3, `controller "x" has not turned for 2m0s`)
		check(0, 5, "")
		check(time.Minute, 6, "")
		check(time.Minute, 5, "")
	})
}

// TestS2_PagesOfLists are counted when lists have brought more objects, not when they fail or begin anew.
func TestS2_PagesOfLists(t *testing.T) {
	s, brought := NewSlots(ByNamespace), map[string]int{}
	s.members = []member{fakeWork{f: func(w *work) {
		for name, n := range brought {
			w.lists(name, n)
		}
	}}}
	for _, step := range []struct {
		name string
		n    int
		want uint64
	}{
		{"pods", 0, 0}, {"pods", 500, 1}, {"pods", 500, 1}, {"pods", 1000, 2}, {"pods", 0, 2}, {"pods", 500, 3},
		{"secrets", 3, 4}, {"pods", 500, 4},
	} {
		brought[step.name] = step.n
		if got := s.Work().Pages; got != step.want {
			t.Errorf("after %d %s: %d pages, want %d", step.n, step.name, got, step.want)
		}
	}
}

// TestS3_TheHousekeeperTurns while calls may begin.
func TestS3_TheHousekeeperTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRun(t, 1)
		r.turns.Store(1)
		r.spawn("housekeeper", r.housekeep)
		time.Sleep(10*housekeeping + housekeeping/2)
		if n := r.turns.Load(); n != 21 {
			t.Errorf("it is at turn %d", n)
		}
		r.stop(nil)
		r.group.Wait()
		if n := r.turns.Load(); n != 0 {
			t.Errorf("after the end it is at turn %d", n)
		}
	})
}

// TestS2_AKeyThatIsParkedWhileItsEntryIsDropped does not stay in the queue: a worker has taken it, and found its
// entry shut.
func TestS2_AKeyThatIsParkedWhileItsEntryIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRun(t, 1)
		defer func() {
			r.stop(nil)
			r.queue.Close()
			r.group.Wait()
		}()
		ours, of := newShare(NewSlots(ByNamespace), slot.Count), slot.Of(slot.Count)
		m := &controllerMember[*corev1.ConfigMap]{ours, r.c}
		r.c.member.Store(m)
		r.serving = &serving[*corev1.ConfigMap]{share: ours, r: r}
		ours.Serve([]slot.Owned{{Number: slot.Count, Versions: map[string]string{}}})
		ours.Reach(ours.Expect()[0], of)
		r.queue.Add("ns/key", queue.Ask[reason]{})
		item, _ := r.queue.Get(0, nil)
		ours.Shut(of)
		begun, otherwise := r.serving.enter(item.Key, &entries.Call{})
		if begun || otherwise.Result != queue.Park {
			t.Fatalf("a call of a shut entry has begun: %v, or ends with %v", begun, otherwise)
		}
		m.settle(ours.Drop(of))
		m.forget(of)
		if err := r.queue.Done(item, otherwise); err != nil {
			t.Fatal(err)
		}
		if s := r.queue.Stats(); s.Parked > 0 {
			t.Errorf("%d keys are parked", s.Parked)
		}
	})
}
