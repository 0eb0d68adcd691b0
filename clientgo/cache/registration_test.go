package cache_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestRemove removes handlers before Run, while the informer runs and after its end, and
// each of them twice.
func TestRemove(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		var early, running, late recorder
		removeTwice := func(registration clientgo.ResourceEventHandlerRegistration) {
			must(t, informer.RemoveEventHandler(registration))
			must(t, informer.RemoveEventHandler(registration))
		}
		removeTwice(addHandler(t, informer, &early))
		removed, stays := addHandler(t, informer, &running), addHandler(t, informer, &late)
		stop := runSynced(t, informer)
		removeTwice(removed)
		source.Add(newPod("b"))
		synctest.Wait()
		stop()
		removeTwice(stays)

		early.want(t)
		running.want(t, "add default/a 1 initial")
		late.want(t, "add default/a 1 initial", "add default/b 2")
	})
}

// TestRemoveDoesNotWait: RemoveEventHandler returns while the handler is in a call;
// ShutDownEventHandler waits for its end.
func TestRemoveDoesNotWait(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		release := make(chan struct{})
		handler := &recorder{then: func() { <-release }}
		registration := addHandler(t, informer, handler)
		runSynced(t, informer)
		source.Add(newPod("a"))
		synctest.Wait()

		must(t, informer.RemoveEventHandler(registration))
		down := make(chan error, 1)
		go func() { down <- cache.ShutDownEventHandler(informer, registration) }()
		synctest.Wait()
		select {
		case err := <-down:
			t.Fatalf("ShutDownEventHandler has returned %v although the handler is in a call", err)
		default:
		}
		close(release)
		must(t, <-down)
		handler.want(t, "add default/a 1")
	})
}

// TestShutDown shuts handlers down that have never run, that were added before Run, and
// that were added after it, and twice.
func TestShutDown(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		var never, before, after recorder
		must(t, cache.ShutDownEventHandler(informer, addHandler(t, informer, &never)))
		early := addHandler(t, informer, &before)
		stop := runSynced(t, informer)
		late := addHandler(t, informer, &after)
		synctest.Wait()
		for range 2 {
			must(t, cache.ShutDownEventHandler(informer, early))
			must(t, cache.ShutDownEventHandler(informer, late))
		}
		never.want(t)
		before.want(t, "add default/a 1 initial")
		after.want(t, "add default/a 1 initial")
		stop()
		must(t, cache.ShutDownEventHandler(informer, early))
	})
}

// TestRemoveForeign: an informer ignores the handlers of another one, and refuses registrations
// of another type.
func TestRemoveForeign(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer, other := newInformer(source, &corev1.Pod{}, noOptions), newInformer(source, &corev1.Pod{}, noOptions)
		var handler, handlerOfOther recorder
		registration := addHandler(t, informer, &handler)
		addHandler(t, other, &handlerOfOther)
		must(t, other.RemoveEventHandler(registration))
		run(t, informer)
		run(t, other)
		waitForSync(t, informer)
		source.Add(newPod("a"))
		handler.want(t, "add default/a 1")
		handlerOfOther.want(t, "add default/a 1")

		if err := informer.RemoveEventHandler(nil); err == nil {
			t.Error("nil was removed")
		}
		if err := informer.RemoveEventHandler(foreign{}); err == nil {
			t.Error("a registration of another kind was removed")
		}
	})
}

// foreign is a registration that no informer has made.
type foreign struct {
	clientgo.ResourceEventHandlerRegistration
}

// TestAddNil adds nil instead of a handler.
func TestAddNil(t *testing.T) {
	informer := cache.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, nil)
	if _, err := informer.AddEventHandler(nil); err == nil || !strings.Contains(err.Error(), "nil") {
		t.Errorf("adding a nil handler gives the error %v, want one that says nil", err)
	}
}

// plainHandler is a handler with a type of its own.
type plainHandler struct {
	clientgo.ResourceEventHandlerFuncs
}

// TestRegistrationName: the checker of a handler names the type of the informer, and the function
// or the type of the handler.
func TestRegistrationName(t *testing.T) {
	const here = "github.com/tidings-go/tidings/clientgo/cache_test."
	handlers := map[string]struct {
		handler clientgo.ResourceEventHandler
		want    string
	}{
		"functions":  {clientgo.ResourceEventHandlerFuncs{AddFunc: func(any) {}, DeleteFunc: func(any) {}}, here + "TestRegistrationName"},
		"a pointer":  {&clientgo.ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {}}, here + "TestRegistrationName"},
		"a type":     {plainHandler{}, here + "plainHandler"},
		"its nil":    {(*plainHandler)(nil), ".plainHandler"},
		"no methods": {clientgo.ResourceEventHandlerFuncs{}, "cache.ResourceEventHandlerFuncs"},
	}
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{ResyncPeriod: time.Hour})
		for name, tt := range handlers {
			registration := addHandler(t, informer, tt.handler)
			got, ok := strings.CutPrefix(registration.HasSyncedChecker().Name(), "SharedIndexInformer *v1.Pod + event handler ")
			if !ok || !strings.HasSuffix(got, tt.want) {
				t.Errorf("%s is called %q, want %q", name, registration.HasSyncedChecker().Name(), tt.want)
			}
		}
	})
}
