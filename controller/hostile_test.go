package controller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/controller"
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
