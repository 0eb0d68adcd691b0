package cache_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// typedRecorder is a recorder that is given pods.
type typedRecorder struct{ recorder }

func (r *typedRecorder) OnAdd(pod *corev1.Pod, initial bool) { r.recorder.OnAdd(pod, initial) }
func (r *typedRecorder) OnUpdate(old, new *corev1.Pod)       { r.recorder.OnUpdate(old, new) }
func (r *typedRecorder) OnDelete(d cache.DeletedObject[*corev1.Pod]) {
	if d.FinalStateUnknown != nil {
		r.recorder.OnDelete(*d.FinalStateUnknown)
		return
	}
	r.recorder.OnDelete(d.OptionalObj)
}

// TestTypedInformer puts client-go's typed informer around an informer: its handlers,
// indexes and everything that goes through.
func TestTypedInformer(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		source.Add(labelled("a", "1"))
		typed := cache.NewTypedSharedIndexInformer[*corev1.Pod](newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Indexers: clientgo.Indexers{}}))
		must(t, typed.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{
			"n": func(pod *corev1.Pod) ([]string, error) { return []string{pod.Labels["n"]}, nil },
		}))
		var plain, detailed, filtered []string
		handlers := []cache.TypedResourceEventHandler[*corev1.Pod]{
			&typedRecorder{},
			cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{AddFunc: func(pod *corev1.Pod) { plain = append(plain, pod.Name) }},
			cache.TypedResourceEventHandlerDetailedFuncs[*corev1.Pod]{AddFunc: func(pod *corev1.Pod, initial bool) {
				detailed = append(detailed, fmt.Sprint(pod.Name, initial))
			}},
			cache.TypedFilteringResourceEventHandler[*corev1.Pod]{
				FilterFunc: func(pod *corev1.Pod) bool { return pod.Name == "b" },
				Handler:    cache.TypedResourceEventHandlerFuncs[*corev1.Pod]{AddFunc: func(pod *corev1.Pod) { filtered = append(filtered, pod.Name) }},
			},
		}
		var registrations []clientgo.ResourceEventHandlerRegistration
		for _, handler := range handlers {
			registration, err := typed.AddTypedEventHandler(handler)
			must(t, err)
			registrations = append(registrations, registration)
		}
		if _, err := typed.AddTypedEventHandler(handlers[0], cache.HandlerOptions{}, cache.HandlerOptions{}); err == nil {
			t.Error("a handler was added with two options")
		}
		runSynced(t, typed)
		source.Add(labelled("b", "1"))
		source.Modify(labelled("a", "2"))
		synctest.Wait()
		source.DeleteDropWatch(newPod("b"))
		source.ResetWatch()
		time.Sleep(5 * time.Second)
		source.Delete(newPod("a"))
		synctest.Wait()
		handlers[0].(*typedRecorder).want(t, "add default/a 1 initial", "update default/a 1→3", "update default/a 3→3", "delete default/a 5",
			"add default/b 2", "tombstone default/b 2")
		if !slices.Equal(plain, []string{"a", "b"}) || !slices.Equal(detailed, []string{"atrue", "bfalse"}) || !slices.Equal(filtered, []string{"b"}) {
			t.Errorf("the other handlers were told of %q, %q and %q", plain, detailed, filtered)
		}
		for _, registration := range registrations {
			if !registration.HasSynced() {
				t.Error("a handler has not synced")
			}
			must(t, cache.ShutDownEventHandler(typed, registration))
		}
	})
}

// TestTypedIndexer reads an index as pods.
func TestTypedIndexer(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		typed := cache.NewTypedSharedIndexInformer[*corev1.Pod](newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{
			Indexers: cache.TypedIndexersToIndexers(cache.TypedIndexers[*corev1.Pod]{
				"n": func(pod *corev1.Pod) ([]string, error) { return []string{pod.Labels["n"]}, nil },
			}),
		}))
		indexer := typed.GetTypedIndexer()
		must(t, indexer.AddTypedIndexers(cache.TypedIndexers[*corev1.Pod]{
			"name": func(pod *corev1.Pod) ([]string, error) { return []string{pod.Name}, nil },
		}))
		a, b := labelled("a", "1"), labelled("b", "1")
		must(t, indexer.Add(a))
		must(t, indexer.Add(b))
		byName, err := indexer.ByTypedIndex("name", "b")
		if err != nil || !slices.Equal(byName, []*corev1.Pod{b}) {
			t.Errorf("ByTypedIndex returns %v, %v", byName, err)
		}
		pods, err := indexer.TypedIndex("n", a)
		if err != nil || len(pods) != 2 {
			t.Errorf("TypedIndex returns %v, %v, want two pods", pods, err)
		}
		if _, err := indexer.TypedIndex("none", a); err == nil {
			t.Error("TypedIndex found an index that does not exist")
		}
	})
}
