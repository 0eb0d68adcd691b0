package main

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
)

// notes is a handler that writes down its events.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) write(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// take returns the lines since its last call.
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

func (n *notes) OnUpdate(_, after any) {
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

func TestRemoveInformer(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) { testRemoveInformer(t, caching) })
	})
}

// testRemoveInformer stops the informer of a kind and lets it come back.
func testRemoveInformer(t *testing.T, caching string) {
	server := newServer(t, apisim.Options{})
	create(t, server, configMap("shop", "red", nil))
	c := startCache(t, server, caching, cache.Options{ReaderFailOnMissingInformer: true}, func(c cache.Cache) { informer(t, c) })
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
