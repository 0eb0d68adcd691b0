package flight_test

import (
	"context"
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
)

// playAll lists and watches a track to its end. It may fail, and must not panic nor hang.
func playAll(t *testing.T, track *flight.Track) {
	empty := func() *corev1.ConfigMap { return new(corev1.ConfigMap) }
	played, err := source.Replay(track, empty, source.ReplayOptions{Speed: math.Inf(1)})
	if err != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	stop() // what is silent ends at once
	for range len(track.Records) + 1 {
		played.List(ctx, source.ListOptions{}) //nolint:errcheck // see above
		stream, err := played.Watch(ctx, source.WatchOptions{SendInitialEvents: true})
		for err == nil {
			_, err = stream.Next()
		}
	}
}
