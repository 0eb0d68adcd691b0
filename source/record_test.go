package source

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/internal/tape"
)

// watched is a source whose watch brings one batch of events.
type watched []Event[*corev1.Secret]

func (w watched) List(context.Context, ListOptions) (Page[*corev1.Secret], error) {
	return Page[*corev1.Secret]{}, nil
}
func (w watched) Watch(context.Context, WatchOptions) (Stream[*corev1.Secret], error) { return w, nil }
func (w watched) Next() ([]Event[*corev1.Secret], error)                              { return w, nil }
func (w watched) Close() error                                                        { return nil }

// TestUnselectedEventsInRecordings records and replays an event of an object that is not selected,
// from a source whose objects may be Secrets.
func TestUnselectedEventsInRecordings(t *testing.T) {
	unselected := Event[*corev1.Secret]{Type: Modified, Unselected: true, Item: Item[*corev1.Secret]{Version: "7"}}
	ring := tape.New(tape.Options{MaxBytes: 1 << 20, MaxAge: time.Hour})
	recorded, end := Record(watched{unselected}, ring, "secrets.v1", func() tape.Base {
		return tape.Base{Objects: func(func(tape.Object) bool) {}}
	})
	defer end()
	stream, err := recorded.Watch(t.Context(), WatchOptions{})
	if err == nil {
		_, err = stream.Next()
	}
	if err != nil {
		t.Fatal(err)
	}
	track := &tape.Track{Name: "secrets.v1", Records: ring.Take().Tracks[0].Records}
	played, err := Replay(track, func() *corev1.Secret { return new(corev1.Secret) }, ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err = played.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := stream.Next(); err != nil || len(events) != 1 || events[0] != unselected {
		t.Errorf("replayed %+v, %v, want %+v", events, err, unselected)
	}
}
