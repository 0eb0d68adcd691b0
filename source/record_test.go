package source

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// watched is a source of a resource, whose watch brings one batch of events.
type watched[T any] struct {
	resource string
	events   []Event[T]
}

func (w watched[T]) List(context.Context, ListOptions) (Page[T], error) {
	return Page[T]{Version: "5", Continue: "next", Remaining: 3}, nil
}

func (w watched[T]) Watch(context.Context, WatchOptions) (Stream[T], error) { return w, nil }
func (w watched[T]) Next() ([]Event[T], error)                              { return w.events, nil }
func (w watched[T]) Close() error                                           { return nil }
func (w watched[T]) Collection() tape.Collection {
	return tape.Collection{Version: "v1", Resource: w.resource}
}

// recordsOf returns the records of a watch with events.
func recordsOf[T any](t *testing.T, resource string, events ...Event[T]) []tape.Record {
	t.Helper()
	return records(t, watched[T]{resource, events}, func(recorded Source[T]) error {
		stream, err := recorded.Watch(t.Context(), WatchOptions{})
		if err == nil {
			_, err = stream.Next()
		}
		return err
	})
}

// records returns the records of requests to a source.
func records[T any](t *testing.T, of watched[T], ask func(Source[T]) error) []tape.Record {
	t.Helper()
	ring := tape.New(tape.Options{MaxBytes: 1 << 20, MaxAge: time.Hour})
	recorded, end := Record(of, ring, "x", func() tape.Base {
		return tape.Base{Objects: func(func(tape.Object) bool) {}}
	})
	defer end()
	if err := ask(recorded); err != nil {
		t.Fatal(err)
	}
	return ring.Take().Tracks[0].Records
}

// TestRecordOfRequests: a recording has what was asked, and the place of a page in its list.
func TestRecordOfRequests(t *testing.T) {
	const selector = "shardRange(object.metadata.uid, '0x0', '0x8')"
	got := records(t, watched[*corev1.Pod]{}, func(recorded Source[*corev1.Pod]) error {
		_, err := recorded.List(t.Context(), ListOptions{Version: "4", Limit: 2, Continue: "here", ShardSelector: selector})
		if err == nil {
			_, err = recorded.Watch(t.Context(), WatchOptions{
				Version: "5", Timeout: time.Minute, SendInitialEvents: true, ShardSelector: selector,
			})
		}
		return err
	})
	list := tape.Request{Version: "4", Limit: 2, Continue: "here", ShardSelector: selector}
	watch := tape.Request{Version: "5", Timeout: time.Minute, SendInitialEvents: true, ShardSelector: selector}
	if len(got) != 4 || *got[0].More.Request != list || *got[2].More.Request != watch {
		t.Fatalf("recorded are %+v", got)
	}
	if page := got[1]; page.Version != "5" || page.More.Continue != "next" || page.More.Remaining != 3 {
		t.Errorf("recorded is the page %+v, %+v", page, page.More)
	}
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

// TestRecordOfAnError: the types of errors that informers tell apart are replayed.
func TestRecordOfAnError(t *testing.T) {
	for _, test := range []struct {
		err error
		is  func(error) bool
	}{
		{&apierrors.UnexpectedObjectError{Object: &corev1.Pod{}}, func(err error) bool {
			_, ok := errors.AsType[*apierrors.UnexpectedObjectError](err)
			return ok
		}},
		{&net.OpError{Op: "dial", Err: errors.New("refused")}, func(err error) bool {
			_, ok := errors.AsType[net.Error](err)
			return ok
		}},
		{apierrors.NewResourceExpired("too old"), apierrors.IsResourceExpired},
		{ErrMalformed, func(err error) bool { return errors.Is(err, ErrMalformed) }},
	} {
		r := request{op: "list"}
		recorded := failed(t.Context(), r.fail(Connecting, test.err))
		if err := failure(recorded.More.Failure, r); !test.is(err) || test.err != ErrMalformed && errors.Is(err, ErrMalformed) {
			t.Errorf("%v is replayed as %v", test.err, err)
		}
	}
}
