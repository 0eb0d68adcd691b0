package feed

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/source"
)

// Event is a change of a pod.
type Event = source.Event[*corev1.Pod]

// Feed yields pods and their changes. Make it with [New].
type Feed struct {
	pods    []*corev1.Pod
	batches chan []Event
	version int // of the newest event made
}

// New returns a feed whose initial set is pods. It does not write to them.
func New(pods []*corev1.Pod) *Feed {
	return &Feed{pods: pods, batches: make(chan []Event), version: 100_000_000}
}

// Pods returns the pods of numbers 0 to n-1.
func Pods(seed uint64, n int) []*corev1.Pod {
	pods := make([]*corev1.Pod, n)
	for i := range pods {
		pods[i] = objects.Pod(seed, i)
	}
	return pods
}

// Send hands a batch to the informer and returns when it was taken. The error is that of
// the context. The slice must not be written to afterwards.
func (f *Feed) Send(ctx context.Context, batch []Event) error {
	select {
	case f.batches <- batch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// next returns the version after the newest.
func (f *Feed) next() string {
	f.version++
	return strconv.Itoa(f.version)
}

// Update makes a new state of pod i of the initial set, with a version above all before.
func (f *Feed) Update(i int) Event {
	return event(source.Modified, objects.Next(f.pods[i], f.next()))
}

// Add makes a pod like number i of the initial set under another name.
func (f *Feed) Add(i int, name string) Event {
	return event(source.Added, objects.Renamed(f.pods[i], name, f.next()))
}

// Delete makes the end of a pod.
func (f *Feed) Delete(pod *corev1.Pod) Event {
	return event(source.Deleted, objects.Next(pod, f.next()))
}

func event(t source.EventType, pod *corev1.Pod) Event {
	return Event{Type: t, Item: source.ItemOf(pod)}
}

// errStream is the answer to whoever lists.
var errStream = errors.New("feed: the initial set is streamed: watch with initial events")

// List returns an error: the initial set is streamed.
func (f *Feed) List(context.Context, source.ListOptions) (source.Page[*corev1.Pod], error) {
	return source.Page[*corev1.Pod]{}, errStream
}

// Watch opens a stream, with the initial set if that is asked for.
func (f *Feed) Watch(ctx context.Context, o source.WatchOptions) (source.Stream[*corev1.Pod], error) {
	s := &stream{ctx: ctx, batches: f.batches}
	if o.SendInitialEvents {
		s.initial = f.initial()
	}
	return s, nil
}

// initial returns the initial set, ordered by key as API servers list.
func (f *Feed) initial() []Event {
	events := make([]Event, 0, len(f.pods)+1)
	for _, pod := range f.pods {
		events = append(events, event(source.Added, pod))
	}
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.Key, b.Key) })
	return append(events, Event{Type: source.InitialEventsEnd, Item: source.Item[*corev1.Pod]{Version: "100000000"}})
}

type stream struct {
	ctx     context.Context
	initial []Event
	batches <-chan []Event
}

// initialBatch is how many objects of the initial set are handed on at once.
const initialBatch = 500

func (s *stream) Next() ([]Event, error) {
	if n := min(initialBatch, len(s.initial)); n > 0 {
		batch := s.initial[:n]
		s.initial = s.initial[n:]
		return batch, nil
	}
	s.initial = nil
	select {
	case batch := <-s.batches:
		return batch, nil
	case <-s.ctx.Done():
		return nil, s.ctx.Err()
	}
}

func (s *stream) Close() error { return nil }

// ListerWatcher returns the feed as client-go's informers and the drop-in read it.
func (f *Feed) ListerWatcher() cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, errStream },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			var initial []Event
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				initial = f.initial()
			}
			return newWatcher(ctx, initial, f.batches), nil
		},
	}
}
