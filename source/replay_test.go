package source

import (
	"context"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/internal/engine/tape"
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

// TestReplayOfEndsByTheReader records watches that their reader ends after a minute, and replays
// them: a reader that is silent there gets the recorded end, but for silences at speed 1.
func TestReplayOfEndsByTheReader(t *testing.T) {
	quiet := errors.New("it was quiet")
	for name, test := range map[string]struct {
		because error
		alone   bool // the reader of a replay at speed 1 has to end it
		is      error
		says    string
	}{
		"silence":         {because: ErrSilent, alone: true, is: ErrSilent, says: "canceled"},
		"a torn watch":    {because: errors.Join(quiet, tape.ErrTorn), alone: true, is: tape.ErrTorn, says: "it was quiet"},
		"another reason":  {because: quiet, is: io.EOF, says: "EOF"},
		"an ended reader": {because: context.Canceled, alone: true, says: "canceled"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				err := (request{op: "watch"}).fail(Streaming, context.Canceled)
				if test.because == ErrSilent {
					err = (request{op: "watch"}).fail(Streaming, errors.Join(context.Canceled, ErrSilent))
				}
				cancel(test.because)
				end := failed(ctx, err)
				end.At = time.Minute
				track := &tape.Track{Name: "pods.v1", Records: []tape.Record{
					{Kind: tape.Watch, More: &tape.More{Request: &tape.Request{}}}, {Kind: tape.Begun}, end,
				}}
				for _, speed := range []float64{1, 2, math.Inf(1)} {
					played, err := Replay(track, func() *corev1.Pod { return new(corev1.Pod) }, ReplayOptions{Speed: speed})
					if err != nil {
						t.Fatal(err)
					}
					reader, stop := context.WithTimeout(t.Context(), time.Hour)
					stream, err := played.Watch(reader, WatchOptions{})
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					_, err = stream.Next()
					took := map[float64]time.Duration{1: time.Minute, 2: 30 * time.Second}[speed]
					if math.IsInf(speed, 1) {
						took = 1010 * time.Millisecond // an informer does not take it for a short watch
					}
					if test.alone && speed == 1 {
						took = time.Hour
					} else if !strings.Contains(err.Error(), test.says) || !errors.Is(err, test.is) && test.is != nil {
						t.Errorf("at speed %v it ends with %v", speed, err)
					}
					if d := time.Since(began); d != took {
						t.Errorf("at speed %v it ends after %v, want %v", speed, d, took)
					}
					stop()
				}
			})
		})
	}
}

// TestReplayAtTheSlowestSpeed waits for the longest time, and does not take it for none.
func TestReplayAtTheSlowestSpeed(t *testing.T) {
	began := moment{played: time.Now()}
	if left := began.left(time.Second, math.SmallestNonzeroFloat64); left < math.MaxInt64/2 {
		t.Errorf("a second takes %v", left)
	}
	if left := began.left(math.MinInt64, math.SmallestNonzeroFloat64); left > 0 {
		t.Errorf("an earlier time is %v away", left)
	}
}
