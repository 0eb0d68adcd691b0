package factory_test

import (
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	owncache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/internal/slot"
)

// TestS6_SlotsOfADropIn adds the slot of one namespace and removes that of another.
func TestS6_SlotsOfADropIn(t *testing.T) {
	slotOf := func(namespace string) tidings.SlotSet { return slot.Of(slot.Namespace.Of("", namespace)) }
	eachOfOurs(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		w.create(t, widget("b", "two", "red"))
		slots := tidings.NewSlots(tidings.ByNamespace, slotOf("a"))
		informer := started(t, l, w, settings{slots: slots})
		holds := func(want ...string) {
			t.Helper()
			got := slices.Sorted(maps.Keys(colours(informer.GetStore())))
			if !slices.Equal(got, want) {
				t.Errorf("the store has %v, want %v", got, want)
			}
		}
		holds("a/one")
		var mu sync.Mutex
		var deletes []any
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			mu.Lock()
			defer mu.Unlock()
			deletes = append(deletes, obj)
		}})
		must(t, err)
		must(t, slots.Add(t.Context(), slotOf("b")))
		holds("a/one", "b/two")
		slots.Remove(slotOf("a"))
		synctest.Wait()
		holds("b/two")
		w.update(t, widget("a", "one", "blue"))
		w.create(t, widget("b", "three", "red"))
		synctest.Wait()
		holds("b/three", "b/two")
		mu.Lock()
		defer mu.Unlock()
		if len(deletes) != 1 {
			t.Fatalf("deletes: %v", deletes)
		}
		if moved, ok := deletes[0].(owncache.Moved); !ok || moved.Key != "a/one" || moved.Object == nil {
			t.Errorf("OnDelete received %#v", deletes[0])
		}
	})
}

// TestS6_TransformsOfADropInKeepTheUID has a transform that removes the field that objects are
// divided by. Fakes give objects no UID.
func TestS6_TransformsOfADropInKeepTheUID(t *testing.T) {
	eachOfOurs(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		informer := started(t, l, w, settings{
			slots: tidings.NewSlots(tidings.ByUID, tidings.AllSlots()),
			transform: func(obj any) (any, error) {
				copied := obj.(runtime.Object).DeepCopyObject()
				copied.(metav1.Object).SetUID("")
				return copied, nil
			},
		})
		_, isFake := w.(*fakeWorld)
		if got := len(informer.GetStore().List()); (got == 1) != isFake {
			t.Errorf("%d objects are cached", got)
		}
	})
}
