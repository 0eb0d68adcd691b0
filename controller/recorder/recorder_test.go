package recorder_test

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/recorder"
)

var _ events.EventRecorder = (*recorder.Recorder)(nil)

var regarded = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x",
	UID: "1"}}

func fatal(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// record runs a test in a bubble with a recorder whose events pass a guard.
func record(t *testing.T, test func(*testing.T, *apisim.Server, *recorder.Recorder)) {
	synctest.Test(t, func(t *testing.T) {
		server := apisim.Start(t)
		guard, err := controller.NewGuard(server.Config(), controller.GuardOptions{})
		fatal(t, err)
		r, err := recorder.New(guard.Config(), "test", recorder.Options{})
		fatal(t, err)
		test(t, server, r)
	})
}

// recorded returns the events of the server.
func recorded(t *testing.T, server *apisim.Server) []eventsv1.Event {
	t.Helper()
	objects, _, err := server.List(t.Context(), eventsv1.SchemeGroupVersion.WithResource("events"),
		"default")
	fatal(t, err)
	var all []eventsv1.Event
	for _, object := range objects {
		all = append(all, *object.(*eventsv1.Event))
	}
	return all
}

func TestEvents(t *testing.T) {
	record(t, func(t *testing.T, server *apisim.Server, r *recorder.Recorder) {
		for range 3 {
			r.Eventf(regarded, nil, corev1.EventTypeWarning, "Missing", "Mount", "there is no %s",
				"y")
			time.Sleep(time.Minute)
		}
		all := recorded(t, server)
		if len(all) != 1 {
			t.Fatalf("%d events", len(all))
		}
		e := all[0]
		if e.Regarding.Kind != "ConfigMap" || e.Regarding.Name != "x" ||
			e.Note != "there is no y" ||
			e.ReportingController != "test" || e.Series == nil {
			t.Errorf("the event is %+v", e)
		}
		began := time.Now()
		if r.Close(); time.Since(began) > 0 {
			t.Errorf("Close has waited for %v, with nothing to send", time.Since(began))
		}
	})
}

func TestC09_EventsHaveASecondAtTheEnd(t *testing.T) {
	record(t, func(t *testing.T, server *apisim.Server, r *recorder.Recorder) {
		server.Inject(apisim.Match{Resource: "events.events.k8s.io"},
			apisim.Delay(500*time.Millisecond))
		r.Eventf(regarded, nil, corev1.EventTypeNormal, "Done", "Finish", "the last words")
		r.Close()
		if n := len(recorded(t, server)); n != 1 {
			t.Errorf("%d events", n)
		}
	})
	record(t, func(t *testing.T, server *apisim.Server, r *recorder.Recorder) {
		server.Inject(apisim.Match{Resource: "events.events.k8s.io"}, apisim.Delay(time.Hour))
		r.Eventf(regarded, nil, corev1.EventTypeNormal, "Done", "Finish", "the last words")
		began := time.Now()
		if r.Close(); time.Since(began) != time.Second {
			t.Errorf("Close has waited for %v", time.Since(began))
		}
	})
}
