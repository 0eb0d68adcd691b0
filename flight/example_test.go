package flight_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
)

// A recording of a program is played to an informer.
func ExampleOpen() {
	recording, err := flight.Open("testdata/version-1.zip")
	check(err)
	track, err := recording.Track("configmaps.v1")
	check(err)
	played, err := source.Replay(track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) },
		source.ReplayOptions{Speed: math.Inf(1)})
	check(err)
	informer, err := tidings.NewInformer(played, tidings.InformerOptions[*corev1.ConfigMap]{
		Logger:    quiet,
		Transport: tidings.Transport{Backoff: source.Backoff{Initial: time.Millisecond}},
	})
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go informer.Run(ctx)

	<-played.Done()
	h := informer.Health()
	fmt.Println(h.State, h.Watch.Version, h.LastError)
	// Output:
	// Watching 79 watch configmaps.v1: unexpected EOF
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// TestRewindIsNoticed is a fault that was recorded, as a test: the storage of the server was
// restored from a backup, and its versions went back. docs/recorder.md has this test.
func TestRewindIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recording, err := flight.Open("testdata/rewind.zip")
		check(err)
		track, err := recording.Track("configmaps.v1")
		check(err)
		played, err := source.Replay(track, func() *corev1.ConfigMap { return new(corev1.ConfigMap) },
			source.ReplayOptions{})
		check(err)
		informer, err := tidings.NewInformer(played, tidings.InformerOptions[*corev1.ConfigMap]{})
		check(err)
		go informer.Run(t.Context())

		<-played.Done()
		synctest.Wait()
		if h := informer.Health(); h.Version != "13" || h.Lists != 2 {
			t.Errorf("the informer is at version %s after %d lists: %v", h.Version, h.Lists, h.LastError)
		}
	})
}
