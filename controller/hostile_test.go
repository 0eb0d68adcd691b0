package controller_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/slot"
)

// TestS5_CallsThatHangAreHungUntilOneEnds, also once the keys that waited for them have gone to others.
func TestS5_CallsThatHangAreHungUntilOneEnds(t *testing.T) {
	var release chan struct{}
	inSlots(t, controller.ByNamespace, options{}, func(_ context.Context, r request) (controller.Result, error) {
		if r.Key == "a/long" {
			<-release
		}
		return controller.Result{}, nil
	}, func(w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm) {
		release = make(chan struct{})
		create(w, configMap("a", "long"))
		synctest.Wait()
		s.Serve(owned(slotsOf("a", "b")))
		synctest.Wait()
		create(w, configMap("b", "x"))
		time.Sleep(11 * time.Minute)
		if work := s.Work(); !work.Hung {
			t.Errorf("it is not hung, and %v are late", work.Late)
		}
		s.Shut(slotsOf("b")) // the member gives
		s.Drop(slotsOf("b"))
		time.Sleep(time.Minute)
		if work := s.Work(); !work.Hung || work.Late != slotsOf("a") {
			t.Errorf("hung is %v, late are %v", work.Hung, work.Late)
		}
		close(release)
		time.Sleep(10 * time.Second)
		if work := s.Work(); work.Hung || !work.Late.IsEmpty() {
			t.Errorf("after the end of the call, hung is %v, late are %v", work.Hung, work.Late)
		}
	})
}

// TestS5_AControllerThatIsNotRunIsLacking after a minute, so that other members take what needs it.
func TestS5_AControllerThatIsNotRunIsLacking(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		first := newController(w, options{Name: "first", Slots: s}, nothing)
		second := newController(w, options{Name: "second", Slots: s}, nothing)
		stop := start(w, first)
		s.Begin(newTerm())
		for range 50 {
			if work := s.Work(); work.Started || len(work.Lacks) > 0 {
				t.Fatalf("the work is %+v", work)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(10 * time.Second)
		if lacks := s.Work().Lacks; !slices.Equal(lacks, []string{"second"}) {
			t.Errorf("it lacks %q", lacks)
		}
		stopSecond := start(w, second)
		time.Sleep(time.Second)
		if work := s.Work(); !work.Started || len(work.Lacks) > 0 {
			t.Errorf("the work is %+v", work)
		}
		fatal(t, stop())
		fatal(t, stopSecond())
	})
}

// canceled is a Runner that returns the error of its context.
type canceled struct {
	runnerOfTests
	runs atomic.Int32
	ends error // what RunTerm returns instead; nil is the error of the context
}

func (r *canceled) RunTerm(ctx context.Context, _ controller.Term) error {
	r.runs.Add(1)
	<-ctx.Done()
	if r.ends != nil {
		return r.ends
	}
	return ctx.Err()
}

// TestS2_ARunnerThatReturnsTheErrorOfItsContext is handed over, and taken back, as any other one.
func TestS2_ARunnerThatReturnsTheErrorOfItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		s, r := controller.NewSlots(controller.ByUID), &canceled{}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		s.Begin(newTerm())
		fatal(t, s.Warm(w.ctx, slot.Of(slot.Count)))
		lead(s, nil)
		synctest.Wait()
		for n := range int32(3) {
			if got := r.runs.Load(); got != n+1 {
				t.Fatalf("it was run %d times, want %d", got, n+1)
			}
			s.Shut(slot.Of(slot.Count))
			synctest.Wait()
			select {
			case <-s.Ends():
				t.Fatal("the process is to leave the group")
			default:
			}
			s.Unshut(slot.Of(slot.Count))
			synctest.Wait()
		}
		fatal(t, stop())
	})
}

// TestS2_ARunnerWhoseCallsRunOn is not handed over: what it does may be that of another owner.
func TestS2_ARunnerWhoseCallsRunOn(t *testing.T) {
	inWorld(t, func(w *world) {
		s, r := controller.NewSlots(controller.ByUID), &canceled{ends: controller.ErrCallsRunning}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		s.Begin(newTerm())
		fatal(t, s.Warm(w.ctx, slot.Of(slot.Count)))
		lead(s, nil)
		synctest.Wait()
		s.Shut(slot.Of(slot.Count))
		synctest.Wait()
		if c := s.Calls(slot.Count); c.Running == 0 {
			t.Errorf("the calls are %+v", c)
		}
		if err := stop(); !errors.Is(err, controller.ErrCallsRunning) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestS5_TheListOfANamespaceThatFails keeps the slots of other namespaces from being filled only by a call of
// Warm that has both.
func TestS5_TheListOfANamespaceThatFails(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		s := controller.NewSlots(controller.ByNamespace)
		held, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespaces: []string{"a", "b"}, Slots: s.Held(),
		})
		fatal(t, err)
		stop := start(w, control(w, held, options{Slots: s}, nothing))
		s.Begin(newTerm())
		fatal(t, s.Warm(w.ctx, slotsOf("c")))
		lift := refuseIn(w, "configmaps", "b")
		bounded, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		if err := s.Warm(bounded, slotsOf("a", "b")); err == nil {
			t.Error("both can be filled")
		}
		if err := s.Warm(bounded, slotsOf("a")); err != nil {
			t.Errorf("the slot of the other namespace: %v", err)
		}
		lift()
		fatal(t, s.Warm(w.ctx, slotsOf("a", "b")))
		fatal(t, stop())
	})
}
