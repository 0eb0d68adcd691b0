package source

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/internal/tape"
)

// TestReplayRefuses has tracks that cannot be replayed.
func TestReplayRefuses(t *testing.T) {
	track := &tape.Track{Name: "pods.v1", Collection: tape.Collection{Version: "v1", Kind: "Pod"}}
	pod := func() *corev1.Pod { return new(corev1.Pod) }
	for _, speed := range []float64{-1, math.NaN(), math.Inf(-1)} {
		_, err := Replay(track, pod, ReplayOptions{Speed: speed})
		if err == nil || !strings.Contains(err.Error(), "ReplayOptions.Speed") {
			t.Errorf("speed %v: %v", speed, err)
		}
	}
	asObject := func() Object { return new(unstructured.Unstructured) }
	if _, err := Replay(track, asObject, ReplayOptions{}); err == nil ||
		!strings.Contains(err.Error(), "return it as what it is") {
		t.Errorf("an object of another type: %v", err)
	}
	other := &tape.Track{Name: "pods.v1", Collection: tape.Collection{Namespace: "b"}}
	recording := &tape.Recording{Tracks: []*tape.Track{track, other}}
	for name, want := range map[string]*tape.Track{
		"": nil, "pods.v1": nil, "nodes.v1": nil, "pods.v1 in b": other,
	} {
		if got, err := recording.Track(name); got != want || (err == nil) != (want != nil) {
			t.Errorf("the track %q is %v: %v", name, got, err)
		}
	}
}
