package listwatch

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

// Clearing returns a lister and watcher of the objects of lw after clear has taken away
// some of their fields; nil leaves them. They are what a client has decoded, which nobody
// else has. clear may be called from several goroutines, with objects of any type.
func Clearing(lw cache.ListerWatcher, clear func(runtime.Object)) cache.ListerWatcher {
	if clear == nil {
		return lw
	}
	return &clearing{of: lw, with: cache.ToListerWatcherWithContext(lw), clear: clear}
}

type clearing struct {
	of    cache.ListerWatcher
	with  cache.ListerWatcherWithContext
	clear func(runtime.Object)
}

func (c *clearing) List(o metav1.ListOptions) (runtime.Object, error) {
	return c.ListWithContext(context.Background(), o)
}

func (c *clearing) Watch(o metav1.ListOptions) (watch.Interface, error) {
	return c.WatchWithContext(context.Background(), o)
}

func (c *clearing) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := c.with.ListWithContext(ctx, o)
	if err != nil || list == nil {
		return list, err
	}
	return list, meta.EachListItem(list, func(obj runtime.Object) error {
		c.clear(obj)
		return nil
	})
}

func (c *clearing) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	from, err := c.with.WatchWithContext(ctx, o)
	if err != nil || from == nil {
		return from, err
	}
	cleared := &clearingWatch{from: from, clear: c.clear, events: make(chan watch.Event), done: make(chan struct{})}
	go cleared.run()
	return cleared, nil
}

// IsWatchListSemanticsUnSupported says what the lister and watcher says.
func (c *clearing) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(c.of)
}

// clearingWatch passes events on. Its goroutine ends with the watch that they come from,
// or when it is stopped.
type clearingWatch struct {
	from   watch.Interface
	clear  func(runtime.Object)
	events chan watch.Event
	done   chan struct{}
	stop   sync.Once
}

func (w *clearingWatch) ResultChan() <-chan watch.Event { return w.events }

func (w *clearingWatch) Stop() {
	w.stop.Do(func() {
		close(w.done)
		w.from.Stop()
	})
}

func (w *clearingWatch) run() {
	defer close(w.events)
	for event := range w.from.ResultChan() {
		switch event.Type {
		case watch.Added, watch.Modified, watch.Deleted:
			w.clear(event.Object)
		}
		select {
		case w.events <- event:
		case <-w.done:
			return
		}
	}
}
