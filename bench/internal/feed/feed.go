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

// firstVersion is the resource version of the initial set.
const firstVersion = 100_000_000

// Feed yields pods and their changes. Make it with [New].
type Feed struct {
	pods    []*corev1.Pod
	batches chan []Event
	version int // of the newest event
}

// New returns a feed whose initial set is pods. It does not write to them.
func New(pods []*corev1.Pod) *Feed {
	return &Feed{pods: pods, batches: make(chan []Event), version: firstVersion}
}

// Send hands a batch to the informer and returns when the informer has taken it. The error
// is that of the context. The slice must not be written to afterwards.
func (f *Feed) Send(ctx context.Context, batch []Event) error {
	select {
	case f.batches <- batch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// nextVersion returns the version after the newest.
func (f *Feed) nextVersion() string {
	f.version++
	return strconv.Itoa(f.version)
}

// Update makes a new state of pod i of the initial set, with a version above all before.
func (f *Feed) Update(i int) Event {
	return event(source.Modified, objects.Next(f.pods[i], f.nextVersion()))
}

// Add makes a pod like number i of the initial set under another name.
func (f *Feed) Add(i int, name string) Event {
	return event(source.Added, objects.Renamed(f.pods[i], name, f.nextVersion()))
}

// Delete makes the deletion of a pod.
func (f *Feed) Delete(pod *corev1.Pod) Event {
	return event(source.Deleted, objects.Next(pod, f.nextVersion()))
}

func event(t source.EventType, pod *corev1.Pod) Event {
	return Event{Type: t, Item: source.ItemOf(pod)}
}

// errStream is the error of every list request.
var errStream = errors.New("feed: the initial set is streamed: watch with initial events")

// List returns an error: the initial set is streamed.
func (f *Feed) List(context.Context, source.ListOptions) (source.Page[*corev1.Pod], error) {
	return source.Page[*corev1.Pod]{}, errStream
}

// Watch opens a stream, with the initial set if o asks for it.
func (f *Feed) Watch(
	ctx context.Context, o source.WatchOptions,
) (source.Stream[*corev1.Pod], error) {
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
	end := Event{Type: source.InitialEventsEnd}
	end.Version = strconv.Itoa(firstVersion)
	return append(events, end)
}

type stream struct {
	ctx     context.Context
	initial []Event
	batches <-chan []Event
}

// initialBatch is the largest number of objects of the initial set that one call of Next returns.
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
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return nil, errStream
		},
		WatchFuncWithContext: func(
			ctx context.Context, o metav1.ListOptions,
		) (watch.Interface, error) {
			var initial []Event
			if o.SendInitialEvents != nil && *o.SendInitialEvents {
				initial = f.initial()
			}
			events := make(chan watch.Event)
			w := watch.NewProxyWatcher(events)
			go f.forward(ctx, w.StopChan(), initial, events)
			return w, nil
		},
	}
}

// forward sends single events until the context ends or the watch is stopped.
func (f *Feed) forward(
	ctx context.Context, stop <-chan struct{}, batch []Event, to chan<- watch.Event,
) {
	defer close(to)
	for {
		for i := range batch {
			select {
			case to <- watchEvent(&batch[i]):
			case <-ctx.Done():
				return
			case <-stop:
				return
			}
		}
		batch = nil // an idle watch holds no objects
		select {
		case batch = <-f.batches:
		case <-ctx.Done():
			return
		case <-stop:
			return
		}
	}
}

func watchEvent(e *Event) watch.Event {
	if e.Type != source.InitialEventsEnd {
		return watch.Event{Type: watch.EventType(e.Type.String()), Object: e.Object}
	}
	end := &corev1.Pod{}
	end.ResourceVersion = e.Version
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return watch.Event{Type: watch.Bookmark, Object: end}
}
