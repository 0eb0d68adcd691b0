package byresource_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestForResourceShares asks twice for a resource, and for another.
func TestForResourceShares(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l library) {
		f := l.factory(newFakes(t).clients(t), 0)
		first := f.ForResource(widgets)
		if again := f.ForResource(widgets); again != first || again.Informer() != first.Informer() {
			t.Error("the second to ask for a resource gets another informer")
		}
		if other := f.ForResource(gears); other == first || other.Informer() == first.Informer() {
			t.Error("two resources have one informer")
		}
		version := schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}
		if other := f.ForResource(version); other == first || other.Informer() == first.Informer() {
			t.Error("two versions of a resource have one informer")
		}
	})
}

// TestStartTwice starts what was asked for later, and nothing a second time.
func TestStartTwice(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
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
			t.Error("another Start does not start what was asked for meanwhile")
		}
		if got := w.lists(widgets); got != 1 {
			t.Errorf("widgets are listed %d times, want once", got)
		}
	})
}

// TestStartWithContext ends informers with a context.
func TestStartWithContext(t *testing.T) {
	eachLibrary(t, func(t *testing.T, l library) {
		f := l.factory(newFakes(t).clients(t), 0)
		starter, ok := f.(contextStarter)
		if lacks := l.name == "client-go's dynamicinformer"; !ok || lacks {
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
			t.Error("the informer runs on after its context has ended")
		}
		starter.StartWithContext(t.Context())
	})
}

// TestWaitForCacheSync waits for one informer that syncs, one that cannot, and not for
// one that was not started.
func TestWaitForCacheSync(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		w.refuse(gears)
		f := l.factory(w.clients(t), 0)
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

// TestWaitForCacheSyncClosed waits with a channel that was closed before: the result says
// what is so at that time.
func TestWaitForCacheSyncClosed(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.refuse(gears)
		f := l.factory(w.clients(t), 0)
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

// TestStoppedAtOnce runs informers with a channel that is closed.
func TestStoppedAtOnce(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
		informer := f.ForResource(widgets).Informer()
		closed := make(chan struct{})
		close(closed)
		f.Start(closed)
		f.Shutdown()
		if !informer.IsStopped() {
			t.Error("the informer runs")
		}
	})
}

// TestShutdown checks that it waits, that it may be called more than once and at the
// same time, and that nothing starts after it.
func TestShutdown(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		l.factory(w.clients(t), 0).Shutdown() // nothing runs: it returns at once

		f := l.factory(w.clients(t), 0)
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

// TestConcurrentUse has goroutines ask, start and wait at the same time.
func TestConcurrentUse(t *testing.T) {
	eachWorld(t, func(t *testing.T, l library, w world) {
		w.create(t, widgets, widget("a", "one", "red"))
		f := l.factory(w.clients(t), 0)
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
