package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
)

// notes is a handler that writes down what it is told.
type notes struct {
	mu     sync.Mutex
	lines  []string
	resync chan time.Time // if not nil, when an update changed nothing
}

func (n *notes) write(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// take returns what was written since the last call.
func (n *notes) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	lines := n.lines
	n.lines = nil
	return lines
}

func (n *notes) OnAdd(obj any, initial bool) {
	n.write("add %s, initial %v", obj.(client.Object).GetName(), initial)
}

func (n *notes) OnUpdate(before, after any) {
	if before == after {
		if n.resync != nil {
			n.resync <- time.Now()
		}
		return
	}
	n.write("update %s", after.(client.Object).GetName())
}

func (n *notes) OnDelete(obj any) {
	if unknown, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		n.write("delete %s, unseen", unknown.Obj.(client.Object).GetName())
		return
	}
	n.write("delete %s", obj.(client.Object).GetName())
}

// informer returns the informer of ConfigMaps without waiting for it.
func informer(t *testing.T, c cache.Cache) cache.Informer {
	t.Helper()
	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestHandlers(t *testing.T) {
	eachInformer(t, func(t *testing.T, newInformer newInformer) {
		synctest.Test(t, func(t *testing.T) { testHandlers(t, newInformer) })
	})
}

// testHandlers lets handlers come before and after the start, resync, and go.
func testHandlers(t *testing.T, newInformer newInformer) {
	server := newServer(t, apisim.Options{})
	create(t, server, configMap("shop", "red", nil))
	early, late := &notes{resync: make(chan time.Time)}, &notes{}
	var first toolscache.ResourceEventHandlerRegistration
	c := startCache(t, server, cache.Options{NewInformer: newInformer}, func(c cache.Cache) {
		var err error
		if first, err = informer(t, c).AddEventHandlerWithResyncPeriod(early, 30*time.Second); err != nil {
			t.Fatal(err)
		}
	})
	i := informer(t, c)
	second, err := i.AddEventHandler(late)
	if err != nil {
		t.Fatal(err)
	}
	<-first.HasSyncedChecker().Done()
	<-second.HasSyncedChecker().Done()
	expect(t, "early handler", early.take(), "add red, initial true")
	expect(t, "late handler", late.take(), "add red, initial true")

	create(t, server, configMap("shop", "blue", nil))
	update(t, server, configMap("shop", "red", map[string]string{"shade": "dark"}))
	remove(t, server, configMapsResource(), "shop", "red")
	synctest.Wait()
	want := []string{"add blue, initial false", "update red", "delete red"}
	expect(t, "early handler", early.take(), want...)
	expect(t, "late handler", late.take(), want...)

	last := <-early.resync
	for range 3 {
		next := <-early.resync
		if since := next.Sub(last); since < 30*time.Second || since > 31*time.Second {
			t.Errorf("a resync after %v, want one every 30s", since)
		}
		last = next
	}

	for range 2 { // the second has nothing left to do
		if err := i.RemoveEventHandler(first); err != nil {
			t.Fatal(err)
		}
	}
	create(t, server, configMap("shop", "green", nil))
	synctest.Wait()
	expect(t, "removed handler", early.take())
	expect(t, "handler that stayed", late.take(), "add green, initial false")
}

func TestRemoveInformer(t *testing.T) {
	eachInformer(t, func(t *testing.T, newInformer newInformer) {
		synctest.Test(t, func(t *testing.T) { testRemoveInformer(t, newInformer) })
	})
}

// testRemoveInformer stops the informer of a kind and lets it come back.
func testRemoveInformer(t *testing.T, newInformer newInformer) {
	server := newServer(t, apisim.Options{})
	create(t, server, configMap("shop", "red", nil))
	c := startCache(t, server, cache.Options{NewInformer: newInformer, ReaderFailOnMissingInformer: true}, func(c cache.Cache) { informer(t, c) })
	removed, handler := informer(t, c), &notes{}
	if _, err := removed.AddEventHandler(handler); err != nil {
		t.Fatal(err)
	}
	expect(t, "before", names(t, c, &corev1.ConfigMapList{}), "shop/red")
	synctest.Wait()
	expect(t, "told before", handler.take(), "add red, initial true")

	if err := c.RemoveInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	if !removed.IsStopped() {
		t.Error("the informer that was removed is not stopped")
	}
	if _, err := removed.AddEventHandler(&notes{}); err == nil {
		t.Error("add a handler to a stopped informer: want an error")
	}
	err := c.List(t.Context(), &corev1.ConfigMapList{})
	if missing, ok := errors.AsType[*cache.ErrResourceNotCached](err); !ok || missing.GVK.Kind != "ConfigMap" {
		t.Errorf("list without an informer: %v, want ErrResourceNotCached for ConfigMap", err)
	}
	create(t, server, configMap("shop", "blue", nil))
	synctest.Wait()
	expect(t, "told after", handler.take())

	i, err := c.GetInformer(t.Context(), &corev1.ConfigMap{})
	if err != nil {
		t.Fatal(err)
	}
	if i.IsStopped() || !i.HasSynced() {
		t.Errorf("the new informer: stopped %v, synced %v", i.IsStopped(), i.HasSynced())
	}
	expect(t, "again", names(t, c, &corev1.ConfigMapList{}), "shop/blue", "shop/red")
}
