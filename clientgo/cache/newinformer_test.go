package cache_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
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
	for name, newInformer := range newInformerConstructors {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { test(t, newInformer) })
		})
	}
}

// TestNewInformer follows objects with an informer that has one handler.
func TestNewInformer(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t, "a")
		var handler recorder
		store, controller := newInformer(clientgo.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: &handler})
		if controller.HasSynced() || clientgo.IsDone(controller.HasSyncedChecker()) {
			t.Error("it has synced before Run")
		}
		stop := runSynced(t, controller)
		<-controller.HasSyncedChecker().Done()
		source.Add(newPod("b"))
		source.Modify(newPod("a"))
		source.Delete(newPod("b"))
		handler.want(t, "add default/a 1 initial", "update default/a 1→3", "add default/b 2", "delete default/b 4")
		wantKeys(t, "ListKeys", store.ListKeys(), nil, "default/a")
		same(t, "LastSyncResourceVersion", controller.LastSyncResourceVersion(), "4")

		source.ModifyDropWatch(newPod("a"))
		source.AddDropWatch(newPod("c"))
		source.ResetWatch()
		time.Sleep(5 * time.Second)
		handler.want(t, "update default/a 3→5", "add default/c 6")
		stop()
		source.Add(newPod("d"))
		handler.want(t)
	})
}

// TestNewInformerResync: its resyncs may come more often than once in a second, tell of
// everything, and so does a list of what is unchanged.
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

// TestNewInformerUnchanged: a list tells of what it finds unchanged.
func TestNewInformerUnchanged(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t, "a")
		var handler recorder
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: &handler, ResyncPeriod: time.Hour})
		runSynced(t, controller)
		source.AddDropWatch(newPod("b"))
		source.DeleteDropWatch(newPod("b"))
		source.ResetWatch()
		time.Sleep(5 * time.Second)
		handler.want(t, "add default/a 1 initial", "update default/a 1→1")
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

// TestWatchTimeout: without a wish, and with one that is too short, watches are asked to
// last between 5 and 10 minutes.
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

// TestNewInformerHandlerDeletes: a handler may change what is watched. Every object comes
// to its end.
func TestNewInformerHandlerDeletes(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t)
		var gone sync.WaitGroup
		gone.Add(3)
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: clientgo.ResourceEventHandlerFuncs{
			UpdateFunc: func(old, new any) {
				if from, to := old.(*corev1.Pod).Labels["n"], new.(*corev1.Pod).Labels["n"]; from != "first" || to != "last" {
					t.Errorf("an update from %q to %q", from, to)
				}
				source.Delete(new.(*corev1.Pod).DeepCopy())
			},
			DeleteFunc: func(any) { gone.Done() },
		}})
		runSynced(t, controller)
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				source.Add(labelled(name, "first"))
				source.Modify(labelled(name, "last"))
			}()
		}
		gone.Wait()
	})
}

// TestNewInformerReadWhileResyncing: the cache can be read while resyncs go on, and its
// objects are not transformed again.
func TestNewInformerReadWhileResyncing(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		store, controller := newInformer(clientgo.InformerOptions{
			ListerWatcher: newSource(t, "a", "b"), ObjectType: &corev1.Pod{}, Handler: &recorder{}, ResyncPeriod: time.Millisecond,
			Transform: func(obj any) (any, error) {
				if pod := obj.(*corev1.Pod); pod.Labels == nil {
					pod.Labels = map[string]string{"n": "once"}
					return pod, nil
				}
				t.Error("an object was transformed twice")
				return obj, nil
			},
		})
		runSynced(t, controller)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		var readers sync.WaitGroup
		for _, key := range []string{"default/a", "default/b"} {
			readers.Go(func() {
				for ctx.Err() == nil {
					if obj, exists, err := store.GetByKey(key); !exists || err != nil || obj.(*corev1.Pod).Labels["n"] != "once" {
						t.Errorf("the cache has %v, %v, %v for %s", obj, exists, err, key)
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		readers.Wait()
	})
}

// TestNewInformerHammered: many goroutines change objects at once. The cache is what the
// source is in the end, and what the handler was told leads there.
func TestNewInformerHammered(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		source := newSource(t)
		l := &listener{}
		store, controller := newInformer(clientgo.InformerOptions{ListerWatcher: source, ObjectType: &corev1.Pod{}, Handler: l, ResyncPeriod: 100 * time.Millisecond})
		runSynced(t, controller)
		var writers sync.WaitGroup
		for writer := range 3 {
			writers.Go(func() {
				random := rand.New(rand.NewPCG(uint64(writer), 0))
				exists := map[string]bool{}
				for n := range 100 {
					name := fmt.Sprintf("of-%d-%d", writer, random.IntN(5))
					switch {
					case !exists[name]:
						source.Add(labelled(name, fmt.Sprint(n)))
					case random.IntN(2) == 0:
						source.Modify(labelled(name, fmt.Sprint(n)))
						continue
					default:
						source.Delete(labelled(name, fmt.Sprint(n)))
					}
					exists[name] = !exists[name]
				}
			})
		}
		writers.Wait()
		synctest.Wait()
		_, knows, wrong := l.take()
		if len(wrong) > 0 {
			t.Errorf("the handler was told what makes no story:\n  %s", strings.Join(wrong, "\n  "))
		}
		list, err := source.List(metav1.ListOptions{})
		must(t, err)
		items, err := meta.ExtractList(list)
		must(t, err)
		if len(items) != len(store.List()) || len(items) != len(knows) {
			t.Errorf("the source has %d objects, the cache %d, and the handler knows %d", len(items), len(store.List()), len(knows))
		}
		for _, item := range items {
			key := keyOf(item)
			if obj, _, _ := store.GetByKey(key); obj == nil || stateOf(obj) != stateOf(item) || knows[key] != stateOf(item) {
				t.Errorf("%s is %s, and the handler knows %q", key, stateOf(item), knows[key])
			}
		}
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

// TestNewInformerOld: the older constructors make the same.
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
