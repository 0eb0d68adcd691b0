package cache_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// callsBack calls the methods of an informer.
func callsBack(t *testing.T, informer clientgo.SharedIndexInformer) {
	if _, ok := cache.HealthOf(informer); !ok {
		t.Error("the informer has no health")
	}
	informer.HasSynced()
	informer.IsStopped()
	informer.LastSyncResourceVersion()
	informer.GetController().HasSynced()
	informer.GetStore().List()
	informer.GetIndexer().GetIndexers()
	r, err := informer.AddEventHandler(clientgo.ResourceEventHandlerFuncs{})
	if err != nil {
		return // the informer has stopped
	}
	r.HasSynced()
	if err := informer.RemoveEventHandler(r); err != nil {
		t.Error(err)
	}
}

// TestCallbacksCallBack: the functions of a program may call the informer that calls them, and
// add and remove handlers, without a deadlock.
func TestCallbacksCallBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var informer clientgo.SharedIndexInformer
		var mu sync.Mutex // guards called
		called := map[string]bool{}
		back := func(by string) {
			if informer != nil {
				mu.Lock()
				called[by] = true
				mu.Unlock()
				callsBack(t, informer)
			}
		}
		withErrorHandler(t, func(context.Context, error, string, ...any) { back("error handler") })
		logger := funcr.New(func(string, string) { back("logger") }, funcr.Options{Verbosity: 9})
		var lists int
		server := &script{list: func(metav1.ListOptions) (runtime.Object, error) {
			if lists++; lists == 1 {
				return nil, errForbidden
			}
			return podList("5", versioned("a", "3")), nil
		}}
		server.watch = opens(time.Minute, added(versioned("b", "6")))
		informer = cache.NewSharedIndexInformerWithOptions(server, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{
			ResyncPeriod: 10 * time.Second,
			Indexers:     clientgo.Indexers{"broken": func(any) ([]string, error) { return nil, errors.New("no index") }},
		})
		must(t, informer.SetTransform(func(obj any) (any, error) {
			back("transform")
			return obj, nil
		}))
		must(t, informer.SetWatchErrorHandler(func(*clientgo.Reflector, error) { back("watch error handler") }))
		_, err := informer.AddEventHandlerWithOptions(clientgo.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { back("handler") },
			UpdateFunc: func(any, any) { back("resync") },
		}, clientgo.HandlerOptions{Logger: &logger, ResyncPeriod: new(time.Millisecond)})
		must(t, err)
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logger))
		done := running(ctx, informer)
		settle(10 * time.Minute)
		_, err = informer.AddEventHandlerWithOptions(clientgo.ResourceEventHandlerFuncs{}, clientgo.HandlerOptions{Logger: &logger, ResyncPeriod: new(time.Millisecond)})
		must(t, err)
		cancel()
		<-done
		for _, by := range []string{"error handler", "logger", "transform", "watch error handler", "handler", "resync"} {
			if !called[by] {
				t.Errorf("the %s was not called", by)
			}
		}
	})
}

// TestIndexFunctionTakesItsTime: in a bubble, time goes on while goroutines wait for an index
// function that sleeps.
func TestIndexFunctionTakesItsTime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		server := &script{
			list:  func(metav1.ListOptions) (runtime.Object, error) { return podList("5", versioned("a", "3")), nil },
			watch: opens(time.Hour, added(versioned("b", "6"))),
		}
		slow := func(any) ([]string, error) {
			time.Sleep(time.Minute)
			return nil, nil
		}
		informer := cache.NewSharedIndexInformer(server, &corev1.Pod{}, 0, clientgo.Indexers{"slow": slow})
		ctx, stop := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		waiting.Go(func() { informer.RunWithContext(ctx) })
		time.Sleep(time.Second) // the first list is being indexed
		begun := time.Now()
		waiting.Go(func() { must(t, informer.AddIndexers(clientgo.Indexers{"slow too": slow})) })
		waiting.Go(func() { callsBack(t, informer) })
		waiting.Go(func() { must(t, informer.GetStore().Add(versioned("c", "1"))) })
		time.Sleep(10 * time.Minute)
		informer.IsStopped()
		stop()
		waiting.Wait()
		if waited := time.Since(begun); waited > 20*time.Minute {
			t.Errorf("they waited for %v", waited)
		}
	})
}
