package controller_test

import (
	"context"
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
