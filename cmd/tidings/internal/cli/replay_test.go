package cli_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
)

// TestReplayOfMetadata replays a recording of an informer that reads metadata alone.
func TestReplayOfMetadata(t *testing.T) {
	server := newCluster(t, pod("web", corev1.ConditionFalse))
	recorder, err := flight.New(flight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := tidings.NewFactory(&rest.Config{Host: server.url}, tidings.FactoryOptions{
		Transport: tidings.Transport{Recorder: recorder},
	})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := tidings.Metadata(factory, corev1.SchemeGroupVersion.WithResource("pods"), tidings.Selection{})
	if err != nil {
		t.Fatal(err)
	}
	added, updated := make(chan bool, 1), make(chan bool, 1)
	_, err = pods.AddHandler(tidings.Funcs[*metav1.PartialObjectMetadata]{
		OnAdd:    func(*metav1.PartialObjectMetadata, bool) { added <- true },
		OnUpdate: func(_, _ *metav1.PartialObjectMetadata) { updated <- true },
	}, tidings.HandlerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := factory.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-added
	server.update(pod("web", corev1.ConditionTrue))
	<-updated
	file, err := recorder.DumpFile(t.TempDir(), "a test")
	if err != nil {
		t.Fatal(err)
	}
	out := run(t, 0, "replay", file, "--speed", "0").out.String()
	if !strings.Contains(out, " updated shop/web at ") || strings.Contains(out, "rejected") {
		t.Errorf("the replay prints %s", out)
	}
}
