package cache_test

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestTransform: each object is transformed once before handlers and cache receive it, and so is
// the last state of a deleted object. Resyncs do not transform.
func TestTransform(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		informer := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{ResyncPeriod: 10 * time.Second})
		var mu sync.Mutex // guards calls
		calls := map[string]int{}
		must(t, informer.SetTransform(func(obj any) (any, error) {
			mu.Lock()
			defer mu.Unlock()
			pod := obj.(*corev1.Pod)
			calls[nameAndVersion(pod)]++
			pod.Labels = map[string]string{"n": "transformed"}
			return pod, nil
		}))
		handler := record(t, informer)
		addHandler(t, informer, allTransformed(t))
		runSynced(t, informer)
		source.Modify(newPod("a"))
		source.Delete(newPod("b"))
		synctest.Wait()
		time.Sleep(11 * time.Second) // a resync
		source.DeleteDropWatch(newPod("a"))
		source.ResetWatch()
		time.Sleep(5 * time.Second) // a list
		handler.want(t, "add default/a 1 initial", "update default/a 1→3", "update default/a 3→3", "tombstone default/a 3",
			"add default/b 2 initial", "delete default/b 4")
		for object, n := range calls {
			if n != 1 {
				t.Errorf("the transform was called %d times for %s", n, object)
			}
		}
	})
}

// allTransformed is a handler that looks for the label of the transform.
func allTransformed(t *testing.T) clientgo.ResourceEventHandler {
	look := func(objects ...any) {
		for _, obj := range objects {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			if pod := obj.(*corev1.Pod); pod.Labels["n"] != "transformed" {
				t.Errorf("the handler received %s, which is not transformed", nameAndVersion(pod))
			}
		}
	}
	return clientgo.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { look(obj) },
		UpdateFunc: func(old, new any) { look(old, new) },
		DeleteFunc: func(obj any) { look(obj) },
	}
}

// TestTransformToName: handlers receive the name that a transform has given.
func TestTransformToName(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a", "b"), &corev1.Pod{}, noOptions)
		must(t, informer.SetTransform(func(obj any) (any, error) {
			pod := obj.(*corev1.Pod)
			pod.Name = strings.ToUpper(pod.Name)
			return pod, nil
		}))
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add default/A 1 initial", "add default/B 2 initial")
	})
}

// TestTransformToAnything: the result of a transform need not have metadata. The key is that of
// the received object. (client-go takes the key of the result.)
func TestTransformToAnything(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := newSource(t, "a")
		informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, clientgo.Indexers{
			"all": func(obj any) ([]string, error) { return []string{obj.(string)}, nil },
		})
		must(t, informer.SetTransform(func(obj any) (any, error) { return nameAndVersion(obj), nil }))
		var told []any
		_, err := informer.AddEventHandler(clientgo.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { told = append(told, obj) },
			UpdateFunc: func(_, obj any) { told = append(told, obj) },
			DeleteFunc: func(obj any) { told = append(told, obj) },
		})
		must(t, err)
		runSynced(t, informer)
		source.Modify(newPod("a"))
		synctest.Wait()
		if obj, exists, _ := informer.GetStore().GetByKey("default/a"); obj != "default/a 2" || !exists {
			t.Errorf("the cache holds %v, %v", obj, exists)
		}
		keys, err := informer.GetIndexer().IndexKeys("all", "default/a 2")
		wantKeys(t, "IndexKeys", keys, err, "default/a")
		source.Delete(newPod("a"))
		synctest.Wait()
		if len(told) != 3 || told[0] != "default/a 1" || told[1] != "default/a 2" || told[2] != "default/a 3" {
			t.Errorf("the handler received %v", told)
		}
		same(t, "the version of the cache", informer.GetStore().LastStoreSyncResourceVersion(), "3")
	})
}

// TestTransformFails: an object for which the transform fails keeps its state in the cache, or is
// left out if it has none. Other objects are not affected, and the informer syncs. A panic is a
// failure. (client-go never syncs.)
func TestTransformFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		source := newSource(t, "a", "b", "c", "d")
		informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
		must(t, informer.SetTransform(func(obj any) (any, error) {
			switch nameAndVersion(obj) {
			case "default/a 1", "default/b 5":
				return nil, errors.New("not this one")
			case "default/c 3":
				panic("not this one either")
			}
			return obj, nil
		}))
		handler := record(t, informer)
		runSynced(t, informer)
		source.Modify(newPod("b")) // fails
		source.Modify(newPod("b"))
		source.Modify(newPod("a"))
		handler.want(t, "add default/b 2 initial", "add default/d 4 initial", "update default/b 2→6", "add default/a 7")
	})
}

// TestSettingsAfterStart: transform and watch error handler are set before Run.
func TestSettingsAfterStart(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t), &corev1.Pod{}, noOptions)
		set := func() []error {
			return []error{
				informer.SetTransform(func(obj any) (any, error) { return obj, nil }),
				informer.SetWatchErrorHandler(func(*clientgo.Reflector, error) {}),
				informer.SetWatchErrorHandlerWithContext(clientgo.DefaultWatchErrorHandler),
			}
		}
		must(t, errors.Join(set()...))
		stop := runSynced(t, informer)
		for _, when := range []string{"while running", "after the end"} {
			for n, err := range set() {
				if err == nil || !strings.Contains(err.Error(), "has started") && !strings.Contains(err.Error(), "already started") {
					t.Errorf("%s, setting %d: the error is %v, want one that says that it has started", when, n, err)
				}
			}
			stop()
		}
	})
}

// nilling sets a transform. Once the returned function has been called, the transform returns nil
// for the pod named a.
func nilling(t *testing.T, informer clientgo.SharedIndexInformer, result any) (begin func()) {
	begun := false
	must(t, informer.SetTransform(func(obj any) (any, error) {
		if begun && obj.(*corev1.Pod).Name == "a" {
			return result, nil
		}
		return obj, nil
	}))
	return func() { begun = true }
}

// TestTransformToNil: an object for which a transform returns nil keeps its state in the cache,
// or is left out if it has none.
func TestTransformToNil(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		begin := nilling(t, informer, nil)
		handler := record(t, informer)
		runSynced(t, informer)
		begin()
		source.Modify(newPod("a"))
		source.Modify(newPod("b"))
		handler.want(t, "add default/a 1 initial", "add default/b 2 initial", "update default/b 2→4")
		if obj, exists, _ := informer.GetStore().GetByKey("default/a"); !exists || nameAndVersion(obj) != "default/a 1" {
			t.Errorf("the cache holds %v", obj)
		}
	})
}

// TestTransformToNilIsAFailure: client-go then applies no object of the list, and no delete: the
// object stays for good. With a nil pointer, it crashes.
func TestTransformToNilIsAFailure(t *testing.T) {
	for name, result := range map[string]any{"nil": nil, "nil pointer": (*corev1.Pod)(nil)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				source := newSource(t, "a", "b")
				informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, nil)
				begin := nilling(t, informer, result)
				handler := record(t, informer)
				runSynced(t, informer)
				begin()
				source.Modify(newPod("a"))
				source.ResetWatch()
				time.Sleep(5 * time.Second) // a list
				source.Delete(newPod("a"))
				source.Add(newPod("a"))
				source.Add(newPod("c"))
				handler.want(t, "add default/a 1 initial", "add default/b 2 initial", "tombstone default/a 1", "add default/c 6")
				keys := informer.GetStore().ListKeys()
				wantKeys(t, "ListKeys", keys, nil, "default/b", "default/c")
			})
		})
	}
}

// TestTransformToVersion: a transform may give its results versions of its own, higher than
// those of the server. The informer does not compare them, and applies all changes.
func TestTransformToVersion(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		made := 1000
		must(t, informer.SetTransform(func(obj any) (any, error) {
			pod := obj.(*corev1.Pod)
			made--
			pod.ResourceVersion = strconv.Itoa(made)
			return pod, nil
		}))
		handler := record(t, informer)
		runSynced(t, informer)
		for range 2 {
			source.Modify(newPod("a"))
			synctest.Wait()
		}
		source.Delete(newPod("a"))
		handler.want(t, "add default/a 999 initial", "update default/a 999→998", "update default/a 998→997", "delete default/a 996")
	})
}
