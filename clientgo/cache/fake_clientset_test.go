package cache_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// listWatchOf lists and watches pods with a clientset, as generated informers do.
func listWatchOf(client *fake.Clientset) clientgo.ListerWatcher {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, o)
		},
	}, client)
}

// TestFakeObjectWithoutName: tests of programs make objects without a name. Their key is empty.
func TestFakeObjectWithoutName(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		nameless := labelled("", "1")
		nameless.Namespace = ""
		client := fake.NewClientset(nameless)
		informer := newInformer(listWatchOf(client), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"n": podIndexByLabel}})
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add  initial")
		index(t, informer.GetIndexer(), "n", "1", "")
		if _, exists, err := informer.GetStore().GetByKey(""); err != nil || !exists {
			t.Errorf("under the key of nobody: %t, %v", exists, err)
		}
		nameless = nameless.DeepCopy()
		nameless.Labels["n"] = "2"
		_, err := client.CoreV1().Pods("").Update(t.Context(), nameless, metav1.UpdateOptions{})
		must(t, err)
		must(t, client.CoreV1().Pods("").Delete(t.Context(), "", metav1.DeleteOptions{}))
		handler.want(t, "update →", "delete ")
	})
}

// TestExampleIsANilPointer: tests of Kubernetes' admission policies give the type alone.
func TestExampleIsANilPointer(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(listWatchOf(fake.NewClientset(newPod("a"))), (*corev1.Pod)(nil), clientgo.SharedIndexInformerOptions{})
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add default/a initial")
	})
}

// TestFakeAndStoreByHand changes objects in the cache and, before the informer receives an event,
// in the clientset, as tests of programs do. Handlers receive the events of the clientset.
func TestFakeAndStoreByHand(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		client := fake.NewClientset(newPod("a"), newPod("b"), newPod("c"))
		informer := newInformer(listWatchOf(client), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{})
		handler := record(t, informer)
		runSynced(t, informer)
		handler.want(t, "add default/a initial", "add default/b initial", "add default/c initial")
		pods, store := client.CoreV1().Pods("default"), informer.GetStore()

		must(t, store.Delete(newPod("a")))
		must(t, pods.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		handler.want(t, "delete default/a")

		must(t, store.Delete(newPod("b")))
		_, err := pods.Update(t.Context(), labelled("b", "1"), metav1.UpdateOptions{})
		must(t, err)
		handler.want(t, "add default/b")

		must(t, store.Delete(newPod("c")))
		must(t, store.Add(labelled("c", "1")))
		_, err = pods.Update(t.Context(), labelled("c", "2"), metav1.UpdateOptions{})
		must(t, err)
		must(t, pods.Delete(t.Context(), "c", metav1.DeleteOptions{}))
		handler.want(t, "update default/c→", "delete default/c")
		if keys := store.ListKeys(); len(keys) != 1 || keys[0] != "default/b" {
			t.Errorf("the cache has %q, want default/b", keys)
		}
	})
}

// TestFakeAndReplaceByHand replaces the content of the cache, and then deletes and changes the
// objects in the clientset that the cache has lost.
func TestFakeAndReplaceByHand(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		client := fake.NewClientset(newPod("a"), newPod("b"), newPod("c"))
		informer := newInformer(listWatchOf(client), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{})
		handler := record(t, informer)
		runSynced(t, informer)
		handler.take()
		pods := client.CoreV1().Pods("default")
		must(t, informer.GetIndexer().Replace([]any{newPod("c"), newPod("d")}, ""))
		for _, name := range []string{"a", "c"} {
			must(t, pods.Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		_, err := pods.Update(t.Context(), labelled("b", "1"), metav1.UpdateOptions{})
		must(t, err)
		handler.want(t, "delete default/a", "add default/b", "delete default/c")
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/b", "default/d")
	})
}

// TestFakeClientsetUpdateOfSyncedHandler: an update without versions counts as a change, so
// handlers that are not syncing receive it as well. (In client-go they do not.)
func TestFakeClientsetUpdateOfSyncedHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		client := fake.NewClientset(newPod("a"))
		informer := cache.NewSharedIndexInformer(listWatchOf(client), &corev1.Pod{}, time.Minute, nil)
		var handler recorder
		_, err := informer.AddEventHandlerWithResyncPeriod(&handler, 0)
		must(t, err)
		run(t, informer)
		time.Sleep(90 * time.Second)
		_, err = client.CoreV1().Pods("default").Update(t.Context(), labelled("a", "1"), metav1.UpdateOptions{})
		must(t, err)
		handler.want(t, "add default/a initial", "update default/a→")
	})
}

// oddWatch is a list and a watch of a fake whose versions order nothing.
type oddWatch struct {
	name   string
	list   *corev1.PodList
	events []watch.Event
	want   []string
	keys   []string // the keys in the cache at the end
}

var oddWatches = []oddWatch{
	{"one version for all", podList("1", versioned("a", "1")),
		[]watch.Event{added(versioned("b", "1")), modified(versioned("b", "1")), deleted(versioned("a", "1")), added(versioned("a", "1"))},
		[]string{"add default/a 1 initial", "delete default/a 1", "add default/a 1", "add default/b 1", "update default/b 1→1"},
		[]string{"default/a", "default/b"}},
	{"no versions", podList("", newPod("a")),
		[]watch.Event{added(newPod("b")), modified(newPod("a")), modified(newPod("a")), deleted(newPod("b"))},
		[]string{"add default/a initial", "update default/a→", "update default/a→", "add default/b", "delete default/b"},
		[]string{"default/a"}},
	{"a list of version 0", podList("0", versioned("a", "7")),
		[]watch.Event{modified(versioned("a", "3")), added(versioned("b", "2")), deleted(versioned("a", "1"))},
		[]string{"add default/a 7 initial", "update default/a 7→3", "delete default/a 1", "add default/b 2"},
		[]string{"default/b"}},
	{"versions that go down", podList("10", versioned("a", "10")),
		[]watch.Event{modified(versioned("a", "9")), modified(versioned("a", "8")), added(versioned("b", "7")), deleted(versioned("a", "6"))},
		[]string{"add default/a 10 initial", "update default/a 10→9", "update default/a 9→8", "delete default/a 6", "add default/b 7"},
		[]string{"default/b"}},
	{"versions by object", podList("5", versioned("a", "1")),
		[]watch.Event{modified(versioned("a", "2")), added(versioned("b", "1")), modified(versioned("b", "2")), modified(versioned("a", "3"))},
		[]string{"add default/a 1 initial", "update default/a 1→2", "update default/a 2→3", "add default/b 1", "update default/b 1→2"},
		[]string{"default/a", "default/b"}},
	{"versions that are no numbers", podList("x", versioned("a", "x")),
		[]watch.Event{modified(versioned("a", "b")), modified(versioned("a", "a")), added(versioned("b", "z")), deleted(versioned("b", "y"))},
		[]string{"add default/a x initial", "update default/a x→b", "update default/a b→a", "add default/b z", "delete default/b y"},
		[]string{"default/a"}},
}

// TestFakeWatch: every event of a fake is applied, whatever its versions are.
func TestFakeWatch(t *testing.T) {
	for _, tt := range oddWatches {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				w := watch.NewFake() // it sends one event at a time
				server := &script{
					list:  func(metav1.ListOptions) (runtime.Object, error) { return tt.list.DeepCopy(), nil },
					watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
				}
				informer, handler := follow(t, newInformer, server)
				for _, event := range tt.events {
					w.Action(event.Type, event.Object.DeepCopyObject())
				}
				handler.want(t, tt.want...)
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, tt.keys...)
			})
		})
	}
}

// TestFakeRelist: the second list of a fake replaces the cache, also with a lower or an equal
// version, or without one.
func TestFakeRelist(t *testing.T) {
	for version, first := range map[string]string{"": "", "3": "9", "0": "0", "1": "1"} {
		t.Run("from "+first+" to "+version, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := &script{list: func(metav1.ListOptions) (runtime.Object, error) {
					return podList(first, versioned("a", first), versioned("gone", first)), nil
				}}
				w := watch.NewRaceFreeFake()
				server.watch = func(metav1.ListOptions) (watch.Interface, error) { return w, nil }
				informer := newInformer(server, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{"n": podIndexByLabel}})
				runSynced(t, informer)
				server.watch = nil
				server.list = func(metav1.ListOptions) (runtime.Object, error) {
					changed := labelled("a", "changed")
					changed.ResourceVersion = version
					return podList(version, changed, versioned("b", version)), nil
				}
				send(w, status(errExpired))
				settle(10 * time.Second)
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b")
				index(t, informer.GetIndexer(), "n", "changed", "default/a")
			})
		})
	}
}
