package cache_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// newDedicatedFunc makes an informer with one handler.
type newDedicatedFunc func(clientgo.InformerOptions) (clientgo.Store, clientgo.Controller)

var newInformerConstructors = map[string]newDedicatedFunc{
	"client-go": clientgo.NewInformerWithOptions,
	"tidings":   cache.NewInformerWithOptions,
}

// bothDedicated runs a test with each of them.
func bothDedicated(t *testing.T, test func(t *testing.T, newInformer newDedicatedFunc)) {
	t.Helper()
	each(t, newInformerConstructors, test)
}

// TestNewInformer follows objects with an informer that has one handler, which receives an
// update for an object that a list finds unchanged.
func TestNewInformer(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t, "same", "a")
		var handler recorder
		store, controller := newInformer(clientgo.InformerOptions{
			ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: &handler, ResyncPeriod: time.Hour,
		})
		if controller.HasSynced() || clientgo.IsDone(controller.HasSyncedChecker()) {
			t.Error("it has synced before Run")
		}
		stop := runSynced(t, controller)
		<-controller.HasSyncedChecker().Done()
		source.Add(newPod("b"))
		source.Modify(newPod("a"))
		source.Delete(newPod("b"))
		handler.want(t, "add default/same 1 initial", "add default/a 2 initial", "update default/a 2→4",
			"add default/b 3", "delete default/b 5")
		wantKeys(t, "ListKeys", store.ListKeys(), nil, "default/a", "default/same")
		same(t, "LastSyncResourceVersion", controller.LastSyncResourceVersion(), "5")

		source.ModifyDropWatch(newPod("a"))
		source.AddDropWatch(newPod("c"))
		source.ResetWatch()
		time.Sleep(5 * time.Second)
		handler.want(t, "update default/same 1→1", "update default/a 4→6", "add default/c 7")
		stop()
		source.Add(newPod("d"))
		handler.want(t)
	})
}

// TestNewInformerResync: the resync period may be shorter than a second.
func TestNewInformerResync(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t, "a")
		updates := newClock()
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: updates, ResyncPeriod: 100 * time.Millisecond})
		run(t, controller)
		settle(350 * time.Millisecond)
		if got := updates.seconds(); !slices.Equal(got, []float64{0.1, 0.2, 0.3}) {
			t.Errorf("resyncs came at %v seconds", got)
		}
	})
}

// TestNewInformerOptions: indexes, transform and the least timeout of a watch.
func TestNewInformerOptions(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t, "a")
		var mu sync.Mutex // guards timeouts
		var timeouts []int64
		lw := &script{list: source.List, watch: func(o metav1.ListOptions) (watch.Interface, error) {
			mu.Lock()
			timeouts = append(timeouts, *o.TimeoutSeconds)
			mu.Unlock()
			return source.Watch(o)
		}}
		store, controller := newInformer(clientgo.InformerOptions{
			ListerWatcher: lw, ObjectType: &corev1.Pod{}, Handler: &recorder{}, MinWatchTimeout: 30 * time.Minute,
			Indexers: clientgo.Indexers{"n": podIndexByLabel},
			Transform: func(obj any) (any, error) {
				obj.(*corev1.Pod).Labels = map[string]string{"n": "transformed"}
				return obj, nil
			},
		})
		runSynced(t, controller)
		index(t, store.(clientgo.Indexer), "n", "transformed", "default/a")
		for _, timeout := range timeouts {
			if timeout < 30*60 || timeout > 2*30*60 {
				t.Errorf("a watch is to last %d seconds, want between 30 and 60 minutes", timeout)
			}
		}
	})
}

// TestWatchTimeout: without a timeout of the program, and with one that is too short, watches
// request between 5 and 10 minutes.
func TestWatchTimeout(t *testing.T) {
	for _, wish := range []time.Duration{0, time.Second} {
		bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
			var timeout int64
			server := &script{watch: func(o metav1.ListOptions) (watch.Interface, error) {
				timeout = *o.TimeoutSeconds
				return watch.NewRaceFreeFake(), nil
			}}
			_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: server, ObjectType: &corev1.Pod{}, Handler: &recorder{}, MinWatchTimeout: wish})
			runSynced(t, controller)
			if timeout < 5*60 || timeout > 2*5*60 {
				t.Errorf("the watch is to last %d seconds, want between 5 and 10 minutes", timeout)
			}
		})
	}
}

// TestNewInformerSynced: the controller has synced when the handler has returned from the
// first list.
func TestNewInformerSynced(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		release := make(chan struct{})
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{}, Handler: &recorder{then: func() { <-release }}})
		run(t, controller)
		synctest.Wait()
		if controller.HasSynced() {
			t.Error("it has synced before the handler has returned")
		}
		close(release)
		waitForSync(t, controller)
	})
}

// TestNewInformerWithoutHandler: the cache alone is enough. (client-go fails with the first
// object.)
func TestNewInformerWithoutHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store, controller := cache.NewInformerWithOptions(cache.InformerOptions{ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{}})
		runSynced(t, controller)
		wantKeys(t, "ListKeys", store.ListKeys(), nil, "default/a")
	})
}

// TestNewInformerOld: the older constructors make the same informers.
func TestNewInformerOld(t *testing.T) {
	transform := func(obj any) (any, error) {
		pod := obj.(*corev1.Pod)
		pod.Labels = map[string]string{"n": "transformed"}
		return pod, nil
	}
	indexers := clientgo.Indexers{"n": podIndexByLabel}
	type made struct {
		store      clientgo.Store
		controller clientgo.Controller
	}
	for name, tt := range map[string]struct {
		construct            func(clientgo.ListerWatcher, clientgo.ResourceEventHandler) (clientgo.Store, clientgo.Controller)
		indexed, transformed bool
	}{
		"NewInformer": {func(lw clientgo.ListerWatcher, h clientgo.ResourceEventHandler) (clientgo.Store, clientgo.Controller) {
			return cache.NewInformer(lw, &corev1.Pod{}, time.Minute, h)
		}, false, false},
		"NewIndexerInformer": {func(lw clientgo.ListerWatcher, h clientgo.ResourceEventHandler) (clientgo.Store, clientgo.Controller) {
			return cache.NewIndexerInformer(lw, &corev1.Pod{}, time.Minute, h, indexers)
		}, true, false},
		"NewTransformingInformer": {func(lw clientgo.ListerWatcher, h clientgo.ResourceEventHandler) (clientgo.Store, clientgo.Controller) {
			return cache.NewTransformingInformer(lw, &corev1.Pod{}, time.Minute, h, transform)
		}, false, true},
		"NewTransformingIndexerInformer": {func(lw clientgo.ListerWatcher, h clientgo.ResourceEventHandler) (clientgo.Store, clientgo.Controller) {
			return cache.NewTransformingIndexerInformer(lw, &corev1.Pod{}, time.Minute, h, indexers, transform)
		}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var handler recorder
				var m made
				m.store, m.controller = tt.construct(newSource(t, "a"), &handler)
				run(t, m.controller)
				time.Sleep(90 * time.Second)
				waitForSync(t, m.controller)
				handler.want(t, "add default/a 1 initial", "update default/a 1→1")
				label := map[bool]string{true: "transformed"}[tt.transformed]
				if obj, _, _ := m.store.GetByKey("default/a"); labelOf(obj) != label {
					t.Errorf("the cached object has the label %q, want %q", labelOf(obj), label)
				}
				if tt.indexed {
					index(t, m.store.(clientgo.Indexer), "n", label, "default/a")
				}
			})
		})
	}
}
