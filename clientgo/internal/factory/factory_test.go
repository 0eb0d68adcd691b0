package factory_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// TestForResourceShares requests a resource twice, and another one once.
func TestForResourceShares(t *testing.T) {
	eachWithFakes(t, func(t *testing.T, l library, w *fakeWorld) {
		f := l.factory(w.clients(t), settings{})
		store := func(gvr schema.GroupVersionResource) cache.Store { return f.ForResource(gvr).Informer().GetStore() }
		if store(widgets) != store(widgets) {
			t.Error("the second call for a resource returns another informer")
		}
		if store(widgets) == store(gears) || store(widgets) == store(newWidgets) {
			t.Error("two resources, or two versions of one, have one informer")
		}
		if l.form != typedForm && f.ForResource(widgets) != f.ForResource(widgets) {
			t.Error("the second call for a resource returns another GenericInformer")
		}
	})
}

// TestStartTwice: a second start runs later informers, and no informer a second time.
func TestStartTwice(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		f := l.factory(w.clients(t), settings{})
		f.ForResource(widgets)
		stopCh, _ := stopping(t, f)
		f.Start(stopCh)
		f.Start(stopCh)
		synctest.Wait()
		if got := w.lists(widgets); got != 1 {
			t.Errorf("widgets are listed %d times, want once", got)
		}
		later := f.ForResource(gears).Informer()
		synctest.Wait()
		if later.HasSynced() || w.lists(gears) != 0 {
			t.Error("an informer that was asked for after Start runs without another Start")
		}
		f.Start(stopCh)
		synctest.Wait()
		if !later.HasSynced() {
			t.Error("another Start does not start a later informer")
		}
		if got := w.lists(widgets); got != 1 {
			t.Errorf("widgets are listed %d times, want once", got)
		}
	})
}

// TestStartWithContext ends informers with a context. client-go's factory of dynamic informers
// has no such method.
func TestStartWithContext(t *testing.T) {
	eachWithFakes(t, func(t *testing.T, l library, w *fakeWorld) {
		f := l.factory(w.clients(t), settings{})
		starter, ok := f.(interface{ StartWithContext(ctx context.Context) })
		if lacks := l.clientGo && l.form == unstructuredForm; !ok || lacks {
			if ok == lacks {
				t.Errorf("has StartWithContext: %t, want %t", ok, !lacks)
			}
			return
		}
		informer := f.ForResource(widgets).Informer()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		starter.StartWithContext(ctx)
		starter.StartWithContext(ctx)
		synctest.Wait()
		if !informer.HasSynced() || informer.IsStopped() {
			t.Errorf("synced %t, stopped %t: the informer does not run", informer.HasSynced(), informer.IsStopped())
		}
		cancel()
		f.Shutdown()
		if !informer.IsStopped() {
			t.Error("the informer runs after its context has ended")
		}
		starter.StartWithContext(t.Context())
	})
}

// TestWaitForCacheSync waits for one informer that syncs, one that cannot, and not for
// one that was not started.
func TestWaitForCacheSync(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		w.refuse()
		f := l.factory(w.clients(t), settings{})
		if got := f.WaitForCacheSync(after(t, time.Minute)); len(got) != 0 {
			t.Errorf("nothing is started, and the result is %v", got)
		}
		f.ForResource(widgets)
		stopCh, _ := stopping(t, f)
		f.Start(stopCh)
		want := map[schema.GroupVersionResource]bool{widgets: true}
		if got := f.WaitForCacheSync(after(t, time.Minute)); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		f.ForResource(gears)
		if got := f.WaitForCacheSync(after(t, time.Minute)); !maps.Equal(got, want) {
			t.Errorf("%v, want %v: gears are not started", got, want)
		}
		f.Start(stopCh)
		want[gears] = false
		if got := f.WaitForCacheSync(after(t, time.Minute)); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	})
}

// TestShutdown checks that Shutdown waits, that it may be called several times and concurrently,
// and that nothing starts after it.
func TestShutdown(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		l.factory(w.clients(t), settings{}).Shutdown() // nothing runs: it returns at once
		stopped := l.factory(w.clients(t), settings{})
		stopped.ForResource(widgets)
		stopped.Start(after(t, 0))
		stopped.Shutdown()

		f := l.factory(w.clients(t), settings{})
		informer := f.ForResource(widgets).Informer()
		stopCh, stop := stopping(t, f)
		f.Start(stopCh)
		ended := make(chan struct{}, 2)
		for range 2 {
			go func() {
				f.Shutdown()
				ended <- struct{}{}
			}()
		}
		synctest.Wait()
		if len(ended) != 0 {
			t.Error("Shutdown returns while an informer runs")
		}
		later := f.ForResource(gears).Informer()
		f.Start(stopCh)
		synctest.Wait()
		if later.HasSynced() || w.lists(gears) != 0 {
			t.Error("an informer is started after Shutdown")
		}
		stop()
		synctest.Wait()
		if len(ended) != 2 || !informer.IsStopped() {
			t.Errorf("%d of 2 calls of Shutdown have returned, the informer has stopped: %t", len(ended), informer.IsStopped())
		}
		f.Shutdown()
	})
}

// TestConcurrentUse calls the methods of a factory at the same time.
func TestConcurrentUse(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widget("a", "one", "red"))
		f := l.factory(w.clients(t), settings{})
		stopCh, _ := stopping(t, f)
		results := make(chan map[schema.GroupVersionResource]bool)
		for range 8 {
			go func() {
				f.ForResource(widgets)
				f.ForResource(gears)
				f.Start(stopCh)
				results <- f.WaitForCacheSync(stopCh)
			}()
		}
		for range 8 {
			if got := <-results; !got[widgets] || !got[gears] {
				t.Errorf("%v, want both resources in sync", got)
			}
		}
		if got := strings.Join(f.ForResource(widgets).Informer().GetStore().ListKeys(), " "); got != "a/one" || w.lists(widgets) != 1 {
			t.Errorf("the store has %q after %d lists, want a/one after one", got, w.lists(widgets))
		}
	})
}

// TestWaitForCacheSyncClosed waits with a channel that was closed before: the result has the
// state at that time.
func TestWaitForCacheSyncClosed(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.refuse()
		f := l.factory(w.clients(t), settings{})
		f.ForResource(widgets)
		f.ForResource(gears)
		closed := make(chan struct{})
		close(closed)
		began := time.Now()
		start(t, f)
		want := map[schema.GroupVersionResource]bool{widgets: true, gears: false}
		if got := f.WaitForCacheSync(closed); !maps.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("it waited %v, want not at all", waited)
		}
	})
}
