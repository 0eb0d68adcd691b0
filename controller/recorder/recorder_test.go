package recorder_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/tidings-go/tidings"
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

// TestEventsOfMetadata records an event of what an informer of metadata holds: it regards the
// object.
func TestEventsOfMetadata(t *testing.T) {
	record(t, func(t *testing.T, server *apisim.Server, r *recorder.Recorder) {
		_, err := server.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
		fatal(t, err)
		factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
		fatal(t, err)
		informer, err := tidings.Metadata(factory, corev1.SchemeGroupVersion.WithResource("configmaps"),
			tidings.Selection{})
		fatal(t, err)
		fatal(t, factory.Start(t.Context()))
		fatal(t, factory.WaitForSync(t.Context()))
		a, err := informer.Lister().Get("default/a")
		fatal(t, err)
		r.Eventf(a, nil, "Normal", "Done", "Finish", "done")
		r.Close()
		events := recorded(t, server)
		if len(events) != 1 || events[0].Regarding.Kind != "ConfigMap" || events[0].Regarding.APIVersion != "v1" ||
			events[0].Regarding.UID != a.UID {
			t.Errorf("recorded was %+v", events)
		}
		fatal(t, factory.Shutdown(t.Context()))
	})
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

// TestNamesThatTheServerRefuses are errors of New, as no method returns the server's.
func TestNamesThatTheServerRefuses(t *testing.T) {
	for name, says := range map[string]string{
		"":                                       "name part must be non-empty",
		"shop/pod-1/images":                      "must consist of alphanumeric characters",
		"my controller":                          "must consist of alphanumeric characters",
		"-images":                                "must start and end with an alphanumeric character",
		strings.Repeat("x", 129):                 "63",
		"example.com/" + strings.Repeat("x", 64): "63",
		strings.Repeat("x", 60) + "." + strings.Repeat("y", 60) + "/" + strings.Repeat("x", 60): "refuses events of more than 128",
	} {
		if _, err := recorder.New(&rest.Config{Host: "http://127.0.0.1"}, name, recorder.Options{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the error of %q is %v, want %q", name, err, says)
		}
	}
	if _, err := recorder.New(nil, "test", recorder.Options{}); err == nil || !strings.Contains(err.Error(), "rest.Config is nil") {
		t.Errorf("the error without a rest.Config is %v", err)
	}
}

// TestLimitsOfEvents: longer texts are shortened to what the server takes, at the end of a
// character.
func TestLimitsOfEvents(t *testing.T) {
	record(t, func(t *testing.T, server *apisim.Server, r *recorder.Recorder) {
		r.Eventf(regarded, nil, corev1.EventTypeNormal, strings.Repeat("ä", 100), "", "%s", strings.Repeat("ö", 1000))
		time.Sleep(time.Second)
		r.Close()
		all := recorded(t, server)
		if len(all) != 1 {
			t.Fatalf("%d events", len(all))
		}
		e := all[0]
		for text, want := range map[string]int{e.Reason: 127, e.Action: 127, e.Note: 1023} {
			if len(text) != want || !utf8.ValidString(text) || !strings.HasSuffix(text, "…") {
				t.Errorf("%d bytes, want %d: %q", len(text), want, text)
			}
		}
	})
}
