package feed

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/source"
)

// watcher is a watch of single events. It owns one goroutine, which Stop or the end of
// the context ends.
type watcher struct {
	events chan watch.Event
	stop   context.CancelFunc
}

func newWatcher(ctx context.Context, initial []Event, batches <-chan []Event) *watcher {
	ctx, cancel := context.WithCancel(ctx)
	w := &watcher{events: make(chan watch.Event), stop: cancel}
	go w.run(ctx, initial, batches)
	return w
}

// ResultChan returns the channel of the events.
func (w *watcher) ResultChan() <-chan watch.Event { return w.events }

// Stop ends the watch.
func (w *watcher) Stop() { w.stop() }

func (w *watcher) run(ctx context.Context, batch []Event, batches <-chan []Event) {
	defer close(w.events)
	for {
		for i := range batch {
			select {
			case w.events <- eventOf(&batch[i]):
			case <-ctx.Done():
				return
			}
		}
		batch = nil // a watch that is idle holds no objects
		select {
		case batch = <-batches:
		case <-ctx.Done():
			return
		}
	}
}

func eventOf(e *Event) watch.Event {
	switch e.Type {
	case source.Added:
		return watch.Event{Type: watch.Added, Object: e.Object}
	case source.Modified:
		return watch.Event{Type: watch.Modified, Object: e.Object}
	case source.Deleted:
		return watch.Event{Type: watch.Deleted, Object: e.Object}
	default: // the end of the initial set
		return watch.Event{Type: watch.Bookmark, Object: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: e.Version, Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}}
	}
}
