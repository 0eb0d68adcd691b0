package cache_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// script is a server that answers with functions of a test. It records its requests.
type script struct {
	// list answers a list; nil is an empty one of version 1.
	list func(metav1.ListOptions) (runtime.Object, error)
	// watch opens a watch; nil is one in which nothing happens.
	watch func(metav1.ListOptions) (watch.Interface, error)
	// stream opens a watch that begins with a list; nil refuses it, as old servers do.
	stream func(metav1.ListOptions) (watch.Interface, error)

	mu       sync.Mutex // guards requests
	requests []string
}

func (s *script) List(o metav1.ListOptions) (runtime.Object, error) {
	s.note(fmt.Sprintf("list from %q limit %d %s", o.ResourceVersion, o.Limit, o.Continue))
	if s.list == nil {
		return podList("1"), nil
	}
	return s.list(o)
}

func (s *script) Watch(o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents == nil {
		s.note(fmt.Sprintf("watch from %q", o.ResourceVersion))
		if s.watch == nil {
			return watch.NewRaceFreeFake(), nil
		}
		return s.watch(o)
	}
	s.note(fmt.Sprintf("stream from %q", o.ResourceVersion))
	if s.stream == nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "sendInitialEvents", nil)
	}
	return s.stream(o)
}

func (s *script) note(request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, request)
}

// take returns the requests since it was last called.
func (s *script) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	requests := s.requests
	s.requests = nil
	return requests
}

// want waits until the bubble is idle, and compares the requests since the last time.
func (s *script) want(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := s.take(); !slices.Equal(got, want) {
		t.Errorf("the server was asked for\n  %q\nwant\n  %q", got, want)
	}
}

// podList is a list of a version.
func podList(version string, pods ...*corev1.Pod) *corev1.PodList {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, pod := range pods {
		list.Items = append(list.Items, *pod)
	}
	return list
}

// bookmark is the event of a version.
func bookmark(version string) watch.Event {
	return watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}}
}

// initialEnd is the event after the objects of a streamed list.
func initialEnd(version string) watch.Event {
	event := bookmark(version)
	event.Object.(*corev1.Pod).Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return event
}

// send puts events into a watch that has room for them.
func send(w *watch.RaceFreeFakeWatcher, events ...watch.Event) {
	for _, event := range events {
		w.Action(event.Type, event.Object)
	}
}

func added(pod *corev1.Pod) watch.Event    { return watch.Event{Type: watch.Added, Object: pod} }
func modified(pod *corev1.Pod) watch.Event { return watch.Event{Type: watch.Modified, Object: pod} }
func deleted(pod *corev1.Pod) watch.Event  { return watch.Event{Type: watch.Deleted, Object: pod} }
