package cache_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// TestListIsNotKept: an object that stays in the cache does not keep the others of its
// list in memory after they are gone.
func TestListIsNotKept(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		w := watch.NewRaceFreeFake()
		informer := newInformer(&script{
			list: func(metav1.ListOptions) (apiruntime.Object, error) {
				return podList("3", versioned("first", "1"), versioned("stays", "2"), versioned("last", "3")), nil
			},
			watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
		}, &corev1.Pod{}, noOptions)
		record(t, informer)
		runSynced(t, informer)
		objects := map[string]weak.Pointer[corev1.Pod]{}
		for _, obj := range informer.GetStore().List() {
			objects[obj.(*corev1.Pod).Name] = weak.Make(obj.(*corev1.Pod))
		}
		send(w, deleted(versioned("first", "4")), deleted(versioned("last", "5")))
		// Buffers on the way hold the last objects that passed through them.
		send(w, modified(versioned("stays", "6")), added(versioned("other", "7")), bookmark("8"))
		settle(time.Minute)
		runtime.GC()
		for _, name := range []string{"first", "last"} {
			if objects[name].Value() != nil {
				t.Errorf("the object %s is in memory after its end", name)
			}
		}
	})
}
