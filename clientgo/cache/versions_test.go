package cache_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// watching runs an informer of ours whose server lists pods and sends events.
func watching(t *testing.T, list *corev1.PodList, events ...watch.Event) (*recorder, func(...watch.Event)) {
	t.Helper()
	w := watch.NewRaceFreeFake()
	server := &script{
		list:  func(metav1.ListOptions) (runtime.Object, error) { return list, nil },
		watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}
	informer := cache.NewSharedIndexInformerWithOptions(server, &corev1.Pod{}, noOptions)
	handler := new(recorder)
	addHandler(t, informer, handler)
	runSynced(t, informer)
	handler.take()
	then := func(events ...watch.Event) {
		send(w, events...)
		synctest.Wait()
	}
	then(events...)
	return handler, then
}

// TestP02_ReplaysThroughAListerWatcher: states that a server repeats are dropped, and new states
// are applied.
func TestP02_ReplaysThroughAListerWatcher(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handler, then := watching(t, podList("5", versioned("a", "5"), versioned("b", "4")))
		then(modified(versioned("a", "7")))
		then(modified(versioned("a", "5")), modified(versioned("a", "7")), modified(versioned("a", "5")))
		then(deleted(versioned("b", "8")))
		then(added(versioned("b", "4")), deleted(versioned("b", "8")))
		then(modified(versioned("a", "10")))
		handler.want(t, "update default/a 5→7", "delete default/b 8", "update default/a 7→10")
	})
}

// TestLeaseThatEnds: a server deletes the objects of a lease under one version. It does not count
// as a fake.
func TestLeaseThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		handler, then := watching(t, podList("5", versioned("a", "3"), versioned("b", "4"), versioned("c", "5")))
		then(deleted(versioned("a", "6")), deleted(versioned("b", "6")))
		then(modified(versioned("c", "7")), modified(versioned("c", "5")))
		handler.want(t, "delete default/a 6", "delete default/b 6", "update default/c 5→7")
	})
}
