package source

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// watched is a source of a resource, whose watch brings one batch of events.
type watched[T any] struct {
	resource string
	events   []Event[T]
}

func (w watched[T]) List(context.Context, ListOptions) (Page[T], error)     { return Page[T]{}, nil }
func (w watched[T]) Watch(context.Context, WatchOptions) (Stream[T], error) { return w, nil }
func (w watched[T]) Next() ([]Event[T], error)                              { return w.events, nil }
func (w watched[T]) Close() error                                           { return nil }
func (w watched[T]) Collection() tape.Collection {
	return tape.Collection{Version: "v1", Resource: w.resource}
}

// recordsOf returns the records of a watch with events.
func recordsOf[T any](t *testing.T, resource string, events ...Event[T]) []tape.Record {
	t.Helper()
	ring := tape.New(tape.Options{MaxBytes: 1 << 20, MaxAge: time.Hour})
	recorded, end := Record(watched[T]{resource, events}, ring, "x", func() tape.Base {
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
	return ring.Take().Tracks[0].Records
}

// TestSecretsAmongOtherObjects records a Secret that a source brings in the place of a pod.
func TestSecretsAmongOtherObjects(t *testing.T) {
	of := func(kind string) Event[*unstructured.Unstructured] {
		return Event[*unstructured.Unstructured]{Type: Added, Item: ItemOf(&unstructured.Unstructured{
			Object: map[string]any{"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": "a"}},
		})}
	}
	records := recordsOf(t, "pods", of("Pod"), of("Secret"))
	for i, form := range []tape.Form{tape.Encoded, tape.Identity} {
		if r := records[len(records)-2+i]; r.Form != form || (r.Object == nil) != (form == tape.Identity) {
			t.Errorf("object %d is recorded as %s: %+v", i, r.Form, r)
		}
	}
}

// TestUnselectedEventsInRecordings records and replays an event of an object that is not selected,
// from a source whose objects may be Secrets.
func TestUnselectedEventsInRecordings(t *testing.T) {
	unselected := Event[*corev1.Secret]{Type: Modified, Unselected: true, Item: Item[*corev1.Secret]{Version: "7"}}
	track := &tape.Track{Name: "secrets.v1", Records: recordsOf(t, "", unselected)}
	played, err := Replay(track, func() *corev1.Secret { return new(corev1.Secret) }, ReplayOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := played.Watch(t.Context(), WatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if events, err := stream.Next(); err != nil || len(events) != 1 || events[0] != unselected {
		t.Errorf("replayed %+v, %v, want %+v", events, err, unselected)
	}
}
