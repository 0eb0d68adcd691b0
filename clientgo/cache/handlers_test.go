package cache_test

import (
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// TestHandlerTwice: a handler that is added twice has two registrations, and receives everything
// twice until one of them is removed.
func TestHandlerTwice(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		var handler recorder
		first := addHandler(t, informer, &handler)
		second := addHandler(t, informer, &handler)
		if first == second {
			t.Error("both registrations are the same")
		}
		runSynced(t, informer)
		source.Add(newPod("a"))
		handler.want(t, "add default/a 1", "add default/a 1")

		must(t, informer.RemoveEventHandler(first))
		source.Add(newPod("b"))
		handler.want(t, "add default/b 2")

		must(t, informer.RemoveEventHandler(second))
		source.Add(newPod("c"))
		handler.want(t)
	})
}

// TestHandlersComeAndGo adds and removes handlers from many goroutines while objects
// change, and stops meanwhile: only additions after the end may fail.
func TestHandlersComeAndGo(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		stop := runSynced(t, informer)

		var workers sync.WaitGroup
		for range 20 {
			workers.Go(func() {
				for range 50 {
					var handler recorder
					registration, err := informer.AddEventHandler(&handler)
					if err != nil {
						if !informer.IsStopped() {
							t.Error(err)
						}
						return
					}
					if err := informer.RemoveEventHandler(registration); err != nil {
						t.Error(err)
					}
				}
			})
		}
		for n := range 500 {
			source.Change(watch.Event{Type: []watch.EventType{watch.Added, watch.Modified, watch.Deleted}[n%3], Object: newPod("a")}, 1)
		}
		stop()
		workers.Wait()
		if !informer.IsStopped() {
			t.Error("it is not stopped")
		}
	})
}
