package listwatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/source"
)

// watching returns a ListerWatcher with one watch.
func watching(w watch.Interface) *fake {
	return &fake{watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil }}
}

// open opens a stream over a watch with these events in it.
func open(t *testing.T, o source.WatchOptions, events ...watch.Event) (source.Stream[any], *watch.RaceFreeFakeWatcher, *Versions) {
	t.Helper()
	w := watch.NewRaceFreeFake()
	for _, event := range events {
		w.Action(event.Type, event.Object)
	}
	src, versions := New(watching(w), ofPods)
	stream, err := src.Watch(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return stream, w, versions
}

func event(t watch.EventType, name, version string) watch.Event {
	return watch.Event{Type: t, Object: pod(name, version)}
}

func endOfList(version string) watch.Event {
	end := pod("", version)
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return watch.Event{Type: watch.Bookmark, Object: end}
}

func describe(events []source.Event[any]) []string {
	var list []string
	for _, e := range events {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%v %s %s", e.Type, e.Key, e.Version)))
	}
	return list
}

// TestStreamBatches: Next returns the ready events, in order, and the end after them.
func TestStreamBatches(t *testing.T) {
	stream, w, _ := open(t, source.WatchOptions{Version: "1"}, event(watch.Added, "a", "2"), event(watch.Modified, "a", "3"),
		event(watch.Deleted, "a", "4"), event(watch.Bookmark, "", "5"), endOfList("6"))
	w.Stop()
	events, err := stream.Next()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		fmt.Sprintf("%v default/a 2", source.Added), fmt.Sprintf("%v default/a 3", source.Modified), fmt.Sprintf("%v default/a 4", source.Deleted),
		fmt.Sprintf("%v  5", source.Bookmark), fmt.Sprintf("%v  6", source.InitialEventsEnd),
	}
	if got := describe(events); !slices.Equal(got, want) {
		t.Errorf("the events are %q, want %q", got, want)
	}
	for range 2 {
		if events, err = stream.Next(); !errors.Is(err, io.EOF) || len(events) > 0 {
			t.Errorf("after the end, Next returns %v, %v", events, err)
		}
	}
}

// TestStreamBatchIsBounded: a long burst is taken in pieces.
func TestStreamBatchIsBounded(t *testing.T) {
	w := watch.NewFakeWithChanSize(2*maxBatch, false)
	for n := range 2 * maxBatch {
		w.Modify(pod("a", fmt.Sprint(n+1)))
	}
	src, _ := New(watching(w), ofPods)
	stream, err := src.Watch(t.Context(), source.WatchOptions{Version: "0"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 {
		events, err := stream.Next()
		if err != nil || len(events) != maxBatch || events[0].Version != fmt.Sprint(n*maxBatch+1) {
			t.Errorf("piece %d has %d events, %v", n, len(events), err)
		}
	}
}

// TestStreamErrors checks the events that end a stream. The events before them are returned.
func TestStreamErrors(t *testing.T) {
	expired := apierrors.NewResourceExpired("too old")
	unreadable := apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding").AsObject(io.ErrNoProgress)
	for _, tt := range []struct {
		name  string
		event watch.Event
		is    func(error) bool
	}{
		{"a status", watch.Event{Type: watch.Error, Object: &expired.ErrStatus}, apierrors.IsResourceExpired},
		{"an event that the client could not read", watch.Event{Type: watch.Error, Object: unreadable}, func(err error) bool {
			return errors.Is(err, source.ErrMalformed) && apierrors.IsInternalError(err)
		}},
		{"an error of the server", watch.Event{Type: watch.Error, Object: &apierrors.NewInternalError(io.ErrNoProgress).ErrStatus}, func(err error) bool {
			return !errors.Is(err, source.ErrMalformed) && apierrors.IsInternalError(err)
		}},
		{"an error that is no status", event(watch.Error, "a", "1"), func(err error) bool { return err != nil }},
		{"an unknown type", event("RENAMED", "a", "1"), func(err error) bool { return errors.Is(err, source.ErrUnknownEvent) }},
		{"a bookmark without metadata", watch.Event{Type: watch.Bookmark, Object: &metav1.Status{}}, func(err error) bool { return errors.Is(err, source.ErrMalformed) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			stream, _, _ := open(t, source.WatchOptions{Version: "1"}, event(watch.Added, "a", "2"), tt.event)
			if events, err := stream.Next(); err != nil || len(events) != 1 {
				t.Errorf("Next returns %v, %v, want the event before the error", events, err)
			}
			if _, err := stream.Next(); !tt.is(err) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

// TestStreamEnds: the end of the context and Close end a waiting Next; Close stops the
// watch.
func TestStreamEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := watch.NewRaceFreeFake()
		src, _ := New(watching(w), ofPods)
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		stream, err := src.Watch(ctx, source.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		if _, err = stream.Next(); !errors.Is(err, stopped) {
			t.Errorf("the error is %v, want the cause of the context's end", err)
		}
		stream, err = src.Watch(t.Context(), source.WatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, func() {
			if err := stream.Close(); err != nil {
				t.Error(err)
			}
		})
		if _, err = stream.Next(); !errors.Is(err, io.EOF) {
			t.Errorf("the error after Close is %v, want io.EOF", err)
		}
		if !w.IsStopped() {
			t.Error("the watch is not stopped")
		}
	})
}

// TestServerMessagesAreBounded: errors have the beginning of a long message, and no part of an
// object that is sent instead of a Status.
func TestServerMessagesAreBounded(t *testing.T) {
	long := apierrors.NewResourceExpired(strings.Repeat("x", 31<<20))
	src, _ := New(&fake{
		list:  func(metav1.ListOptions) (runtime.Object, error) { return nil, long },
		watch: func(metav1.ListOptions) (watch.Interface, error) { return nil, fmt.Errorf("opening: %w", long) },
	}, ofPods)
	_, listed := src.List(t.Context(), source.ListOptions{})
	_, opened := src.Watch(t.Context(), source.WatchOptions{})
	stream, _, _ := open(t, source.WatchOptions{Version: "1"}, watch.Event{Type: watch.Error, Object: &long.ErrStatus})
	_, streamed := stream.Next()
	for name, err := range map[string]error{"list": listed, "watch": opened, "ERROR event": streamed} {
		if text := err.Error(); !source.IsExpired(err) || len(text) > 4<<10 || !strings.Contains(text, "… (31 MB)") {
			t.Errorf("%s: expired %t, %d bytes: %.100s", name, source.IsExpired(err), len(text), text)
		}
	}
	odd, _, _ := open(t, source.WatchOptions{Version: "1"}, watch.Event{Type: watch.Error, Object: &corev1.Secret{StringData: map[string]string{"k": "hunter2"}}})
	if _, err := odd.Next(); !errors.Is(err, source.ErrMalformed) || strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
		t.Errorf("a Secret in the place of a Status: %v", err)
	}
}
