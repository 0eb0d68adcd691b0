package cache_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// newController makes a controller of a configuration.
type newController func(*clientgo.Config) clientgo.Controller

// consumer processes the items of a queue, as programs do: it keeps a store and calls a handler.
type consumer struct {
	store   clientgo.Store
	handler recorder
}

func newConsumer() *consumer {
	return &consumer{store: cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)}
}

func (c *consumer) process(obj any, initial bool) error {
	for _, d := range obj.(clientgo.Deltas) {
		if err := c.take(d, initial); err != nil {
			return err
		}
	}
	return nil
}

// take applies one delta.
func (c *consumer) take(d clientgo.Delta, initial bool) error {
	switch d.Type {
	case clientgo.ReplacedAll:
		return c.replace(d.Object.(clientgo.ReplacedAllInfo), initial)
	case clientgo.SyncAll:
		for _, obj := range c.store.List() {
			c.handler.OnUpdate(obj, obj)
		}
		return nil
	case clientgo.Bookmark:
		c.store.Bookmark(d.Object.(clientgo.BookmarkInfo).ResourceVersion)
		return nil
	case clientgo.Deleted:
		defer c.handler.OnDelete(d.Object)
		return c.store.Delete(d.Object)
	default:
		return c.set(d.Object, initial)
	}
}

func (c *consumer) set(obj any, initial bool) error {
	old, exists, err := c.store.Get(obj)
	if err != nil {
		return err
	}
	if exists {
		defer c.handler.OnUpdate(old, obj)
	} else {
		defer c.handler.OnAdd(obj, initial)
	}
	return c.store.Update(obj)
}

// replace makes a list the content of the store.
func (c *consumer) replace(info clientgo.ReplacedAllInfo, initial bool) error {
	var listed []string
	for _, obj := range info.Objects {
		listed = append(listed, keyOf(obj))
	}
	for _, obj := range c.store.List() {
		if key := keyOf(obj); !slices.Contains(listed, key) {
			if err := c.store.Delete(obj); err != nil {
				return err
			}
			c.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: key, Obj: obj})
		}
	}
	for _, obj := range info.Objects {
		if err := c.set(obj, initial); err != nil {
			return err
		}
	}
	c.store.Bookmark(info.ResourceVersion)
	return nil
}

// queues are the queues of client-go that a program may bring.
var queues = map[string]func(*consumer) clientgo.Queue{
	"RealFIFO": func(c *consumer) clientgo.Queue {
		return cache.NewRealFIFO(cache.DeletionHandlingMetaNamespaceKeyFunc, c.store, nil)
	},
	"atomic RealFIFO": func(*consumer) clientgo.Queue {
		return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{KeyFunction: cache.DeletionHandlingMetaNamespaceKeyFunc, AtomicEvents: true})
	},
	"DeltaFIFO": func(c *consumer) clientgo.Queue {
		return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KeyFunction: cache.DeletionHandlingMetaNamespaceKeyFunc, KnownObjects: c.store, EmitDeltaTypeReplaced: true})
	},
}

// bothControllers runs a test with each constructor.
func bothControllers(t *testing.T, test func(t *testing.T, newOne newController)) {
	t.Helper()
	each(t, map[string]newController{"client-go": clientgo.New, "tidings": cache.New}, test)
}

// TestNew follows objects through each kind of queue: the first list, events, a list
// after losses, resyncs.
func TestNew(t *testing.T) {
	for name, newQueue := range queues {
		t.Run(name, func(t *testing.T) {
			bothControllers(t, func(t *testing.T, newOne newController) {
				source := newSource(t, "a", "b")
				c := newConsumer()
				controller := newOne(&clientgo.Config{Queue: newQueue(c), ListerWatcher: source, ObjectType: &corev1.Pod{},
					Process: c.process, FullResyncPeriod: time.Minute})
				if controller.HasSynced() || controller.LastSyncResourceVersion() != "" {
					t.Error("it has synced before Run")
				}
				runSynced(t, controller)
				<-controller.HasSyncedChecker().Done()
				c.handler.want(t, "add default/a 1 initial", "add default/b 2 initial")
				source.Modify(newPod("a"))
				synctest.Wait()
				source.Delete(newPod("b"))
				source.Add(newPod("c"))
				c.handler.want(t, "update default/a 1→3", "delete default/b 4", "add default/c 5")
				same(t, "LastSyncResourceVersion", controller.LastSyncResourceVersion(), "5")

				source.ModifyDropWatch(newPod("a"))
				source.DeleteDropWatch(newPod("c"))
				source.AddDropWatch(newPod("d"))
				source.ResetWatch()
				time.Sleep(5 * time.Second)
				c.handler.want(t, "update default/a 3→6", "tombstone default/c 5", "add default/d 8")
				time.Sleep(time.Minute)
				c.handler.want(t, "update default/a 6→6", "update default/d 8→8")
			})
		})
	}
}

// TestNewStoreVersion: a queue that emits bookmarks gives a store its version.
func TestNewStoreVersion(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		source := newSource(t, "a")
		c := newConsumer()
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, EmitDeltaTypeBookmark: true})
		run(t, newOne(&clientgo.Config{Queue: queue, ListerWatcher: source, ObjectType: &corev1.Pod{}, Process: c.process}))
		want := func(version string) {
			t.Helper()
			synctest.Wait()
			if got := c.store.LastStoreSyncResourceVersion(); got != version {
				t.Errorf("the version of the store is %q, want %q", got, version)
			}
		}
		want("1")
		source.Modify(newPod("a"))
		want("2")
		source.Broadcaster.Action(watch.Bookmark, versioned("", "5"))
		want("5")
		source.Delete(newPod("a"))
		want("3") // the store does not order versions
	})
}

// TestNewShouldResync is asked once per period whether there is to be a resync.
func TestNewShouldResync(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		c := newConsumer()
		var mu sync.Mutex // guards asked
		asked := 0
		run(t, newOne(&clientgo.Config{
			Queue: queues["RealFIFO"](c), ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{}, Process: c.process,
			FullResyncPeriod: 10 * time.Second,
			ShouldResync: func() bool {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return asked == 2
			},
		}))
		settle(35 * time.Second)
		if asked != 3 {
			t.Errorf("ShouldResync was called %d times in 35 seconds, want 3", asked)
		}
		c.handler.want(t, "add default/a 1 initial", "update default/a 1→1")
	})
}

// TestNewBatches: ProcessBatch receives all pending items at once, if the queue has batches.
func TestNewBatches(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		c := newConsumer()
		var sizes []int
		controller := newOne(&clientgo.Config{
			Queue: queues["RealFIFO"](c), ListerWatcher: newSource(t, "a", "b", "c"), ObjectType: &corev1.Pod{}, Process: c.process,
			ProcessBatch: func(deltas []clientgo.Delta, initial bool) error {
				sizes = append(sizes, len(deltas))
				return c.process(clientgo.Deltas(deltas), initial)
			},
		})
		runSynced(t, controller)
		c.handler.want(t, "add default/a 1 initial", "add default/b 2 initial", "add default/c 3 initial")
		if !slices.Equal(sizes, []int{3}) {
			t.Errorf("the batches have the sizes %v, want one of 3", sizes)
		}
	})
}

// TestNewOptions: the size of pages, the least timeout of a watch and the description.
func TestNewOptions(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		var timeout int64
		server := &script{
			list: func(o metav1.ListOptions) (runtime.Object, error) {
				list := podList("9", versioned("p"+o.Continue, "1"))
				if o.Continue == "" {
					list.Continue = "next"
				}
				return list, nil
			},
			watch: func(o metav1.ListOptions) (watch.Interface, error) {
				timeout = *o.TimeoutSeconds
				return nil, errForbidden
			},
		}
		c := newConsumer()
		var told failures
		controller := newOne(&clientgo.Config{
			Queue: queues["RealFIFO"](c), ListerWatcher: server, ObjectType: &corev1.Pod{}, ObjectDescription: "pods of mine", Process: c.process,
			WatchListPageSize: 4, MinWatchTimeout: time.Hour, WatchErrorHandlerWithContext: told.handle,
		})
		run(t, controller)
		server.want(t, `stream from ""`, `list from "0" limit 4 `, `list from "" limit 4 next`, `watch from "9"`)
		if timeout < 3600 || timeout > 7200 {
			t.Errorf("the watch is to last %d seconds, want between one and two hours", timeout)
		}
		if notes := told.take(); !slices.Equal(notes, []string{`Forbidden of pods of mine at "9"`}) {
			t.Errorf("the watch error handler received %q", notes)
		}
		c.handler.want(t, "add default/p 1 initial", "add default/pnext 1 initial")
	})
}

// TestNewOldWatchErrorHandler is called, and goes before the one with a context.
func TestNewOldWatchErrorHandler(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		c := newConsumer()
		told := make(chan error, 1)
		run(t, newOne(&clientgo.Config{
			Queue: queues["RealFIFO"](c), ObjectType: &corev1.Pod{}, Process: c.process,
			ListerWatcher: &script{list: func(metav1.ListOptions) (runtime.Object, error) { return nil, errForbidden }},
			WatchErrorHandler: func(_ *clientgo.Reflector, err error) {
				select {
				case told <- err:
				default:
				}
			},
			WatchErrorHandlerWithContext: func(context.Context, *clientgo.Reflector, error) { t.Error("the other handler was called") },
		}))
		if err := <-told; !errors.Is(err, errForbidden) {
			t.Errorf("the handler received %v", err)
		}
	})
}

// TestNewProcessFails: an error of the Process function does not delay other items.
func TestNewProcessFails(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		c := newConsumer()
		source := newSource(t, "a", "b")
		run(t, newOne(&clientgo.Config{
			Queue: queues["RealFIFO"](c), ListerWatcher: source, ObjectType: &corev1.Pod{},
			Process: func(obj any, initial bool) error {
				if nameAndVersion(obj.(clientgo.Deltas).Newest().Object) == "default/a 1" {
					return fmt.Errorf("not this one")
				}
				return c.process(obj, initial)
			},
		}))
		synctest.Wait()
		source.Modify(newPod("b"))
		c.handler.want(t, "add default/b 2 initial", "update default/b 2→3")
	})
}

// TestNewStops: the end closes the queue and waits for a running Process function.
func TestNewStops(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		c := newConsumer()
		queue := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true})
		release, done := make(chan struct{}), make(chan struct{})
		ctx, cancel := context.WithCancel(quiet(t))
		controller := newOne(&clientgo.Config{Queue: queue, ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{},
			Process: func(obj any, initial bool) error {
				<-release
				return c.process(obj, initial)
			}})
		go func() {
			defer close(done)
			controller.RunWithContext(ctx)
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Run has returned although Process is running")
		default:
		}
		close(release)
		<-done
		if _, err := queue.Pop(func(any, bool) error { return nil }); !errors.Is(err, cache.ErrFIFOClosed) {
			t.Errorf("the queue yields %v, want that it is closed", err)
		}
	})
}

// tellingQueue is a queue that receives versions.
type tellingQueue struct {
	clientgo.Queue
	versions []string
}

func (q *tellingQueue) UpdateResourceVersion(version string) {
	q.versions = append(q.versions, version)
}

// TestNewVersionsAreTold: a queue with the method UpdateResourceVersion receives the version of
// each event of a watch, bookmarks included.
func TestNewVersionsAreTold(t *testing.T) {
	bothControllers(t, func(t *testing.T, newOne newController) {
		w := watch.NewRaceFreeFake()
		server := &script{
			list:  func(metav1.ListOptions) (runtime.Object, error) { return podList("10"), nil },
			watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
		}
		c := newConsumer()
		queue := &tellingQueue{Queue: queues["RealFIFO"](c)}
		run(t, newOne(&clientgo.Config{Queue: queue, ListerWatcher: server, ObjectType: &corev1.Pod{}, Process: c.process}))
		for _, event := range []watch.Event{added(versioned("a", "20")), modified(versioned("a", "30")), bookmark("40"), deleted(versioned("a", "50"))} {
			synctest.Wait()
			send(w, event)
		}
		synctest.Wait()
		if !slices.Equal(queue.versions, []string{"20", "30", "40", "50"}) {
			t.Errorf("the queue received the versions %q", queue.versions)
		}
	})
}
