package secrets

import (
	"context"
	"math"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
)

// newRecorder returns a recorder that keeps everything of a test.
func newRecorder(t *testing.T) *flight.Recorder {
	recorder, err := flight.New(flight.Options{})
	must(t, err)
	return recorder
}

// printRecording prints a recording, and the caches of its replays.
func printRecording(t *testing.T, o *Output, recorder *flight.Recorder) {
	t.Helper()
	recording := o.PrintRecording(t, recorder)
	if len(recording.Tracks) == 0 {
		t.Error("the recording is empty: the test sees nothing")
	}
	for _, track := range recording.Tracks {
		printReplay(t, o, track)
	}
}

// printReplay prints the objects and the health of a replay.
func printReplay(t *testing.T, o *Output, track *flight.Track) {
	t.Helper()
	empty := func() *unstructured.Unstructured { return new(unstructured.Unstructured) }
	played, err := source.Replay(track, empty, source.ReplayOptions{Speed: math.Inf(1)})
	must(t, err)
	informer, err := tidings.NewInformer(played, tidings.InformerOptions[*unstructured.Unstructured]{})
	must(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- informer.Run(ctx) }()
	<-played.Done()
	synctest.Wait()
	for key, object := range informer.Lister().All() {
		o.Print(key, object.Object)
	}
	o.Print(informer.Health())
	stop()
	o.Print(<-ran)
}
