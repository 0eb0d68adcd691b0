package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestSynced goes through the points of sync: the cache is complete, the handler has
// returned from its initial adds. Both have a checker that says the same.
func TestSynced(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		listing, handling := make(chan struct{}), make(chan struct{})
		informer := newInformer(&script{
			list: func(o metav1.ListOptions) (runtime.Object, error) {
				<-listing
				return source.List(o)
			},
			watch: source.Watch,
		}, &corev1.Pod{}, noOptions)
		registration := addHandler(t, informer, &recorder{then: func() { <-handling }})
		wantSynced := func(when string, cached, handled bool) {
			t.Helper()
			synctest.Wait()
			for _, of := range []struct {
				what      string
				got, want bool
			}{
				{"informer.HasSynced", informer.HasSynced(), cached},
				{"informer.HasSyncedChecker", cache.IsDone(informer.HasSyncedChecker()), cached},
				{"GetController().HasSynced", informer.GetController().HasSynced(), cached},
				{"GetController().HasSyncedChecker", cache.IsDone(informer.GetController().HasSyncedChecker()), cached},
				{"registration.HasSynced", registration.HasSynced(), handled},
				{"registration.HasSyncedChecker", cache.IsDone(registration.HasSyncedChecker()), handled},
			} {
				if of.got != of.want {
					t.Errorf("%s: %s is %v, want %v", when, of.what, of.got, of.want)
				}
			}
		}
		wantSynced("before Run", false, false)
		run(t, informer)
		wantSynced("while listing", false, false)
		close(listing)
		wantSynced("in the first add", true, false)
		handling <- struct{}{}
		wantSynced("in the second add", true, false)
		close(handling)
		wantSynced("after the adds", true, true)
	})
}

// TestSyncedLateHandler: a handler that joins a synced informer is synced after its own adds,
// and not before, also if there is none. One of an empty list is synced with the informer.
func TestSyncedLateHandler(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		early := addHandler(t, informer, &recorder{})
		runSynced(t, informer)
		empty := addHandler(t, informer, &recorder{})
		synctest.Wait()
		if !early.HasSynced() || !empty.HasSynced() {
			t.Error("a handler without objects has not synced")
		}

		source.Add(newPod("a"))
		synctest.Wait()
		release := make(chan struct{})
		late := addHandler(t, informer, &recorder{then: func() { <-release }})
		synctest.Wait()
		if late.HasSynced() {
			t.Error("it has synced before the handler has returned")
		}
		close(release)
		<-late.HasSyncedChecker().Done()
		if !late.HasSynced() {
			t.Error("it has not synced although its checker is done")
		}
	})
}

// TestSyncedDespiteDelete: what is deleted right after the list does not keep a handler
// from syncing.
func TestSyncedDespiteDelete(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		release := make(chan struct{})
		handler := &recorder{then: func() { <-release }}
		registration := addHandler(t, informer, handler)
		run(t, informer)
		synctest.Wait()
		source.Delete(newPod("a"))
		synctest.Wait()
		close(release)
		handler.want(t, "add default/a 1 initial", "delete default/a 2")
		if !registration.HasSynced() {
			t.Error("the handler has not synced")
		}
	})
}

// TestWaitForSync: what client-go has for waiting works with the informer.
func TestWaitForSync(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		registration := addHandler(t, informer, &recorder{})
		ctx, cancel := context.WithTimeout(quiet(t), time.Second)
		defer cancel()
		if cache.WaitFor(ctx, "the cache", informer.HasSyncedChecker()) {
			t.Error("WaitFor is done with an informer that does not run")
		}
		if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			t.Error("WaitForCacheSync is done with an informer that does not run")
		}
		run(t, informer)
		ctx = quiet(t)
		if !cache.WaitFor(ctx, "the cache", informer.HasSyncedChecker(), registration.HasSyncedChecker()) ||
			!cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, registration.HasSynced) ||
			!cache.WaitForNamedCacheSyncWithContext(ctx, informer.HasSynced) {
			t.Error("it has not synced")
		}
	})
}

// TestVersions: LastSyncResourceVersion is what was read, LastStoreSyncResourceVersion
// what is in the cache, which bookmarks move too.
func TestVersions(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a", "b")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		wantVersions := func(want string) {
			t.Helper()
			synctest.Wait()
			for what, got := range map[string]string{
				"LastSyncResourceVersion":               informer.LastSyncResourceVersion(),
				"GetController.LastSyncResourceVersion": informer.GetController().LastSyncResourceVersion(),
				"LastStoreSyncResourceVersion":          informer.GetStore().LastStoreSyncResourceVersion(),
			} {
				if got != want {
					t.Errorf("%s is %q, want %q", what, got, want)
				}
			}
		}
		wantVersions("")
		run(t, informer)
		wantVersions("2")
		source.Modify(newPod("a"))
		wantVersions("3")
		source.Delete(newPod("b"))
		wantVersions("4")
		source.Broadcaster.Action("BOOKMARK", versioned("", "7"))
		wantVersions("7")
	})
}

// TestStoreVersionNeverAhead: the version of the cache is not that of something which
// the cache does not hold, as a reader sees it who asks for the version first.
func TestStoreVersionNeverAhead(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t)
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		runSynced(t, informer)
		done := make(chan struct{})
		go func() {
			defer close(done)
			for range 200 {
				source.Modify(newPod("a")) // the version counts the changes
			}
		}()
		store := informer.GetStore()
		for running := true; running; {
			select {
			case <-done:
				synctest.Wait()
				running = false
			default:
			}
			claimed := store.LastStoreSyncResourceVersion()
			obj, exists, _ := store.GetByKey("default/a")
			switch {
			case claimed == "0": // of the empty list
			case !exists:
				t.Fatalf("the cache claims version %s and holds nothing", claimed)
			case number(t, versionOf(obj)) < number(t, claimed):
				t.Fatalf("the cache claims version %s and holds %s", claimed, versionOf(obj))
			}
		}
		if got := store.LastStoreSyncResourceVersion(); got != "200" {
			t.Errorf("the version in the end is %s, want 200", got)
		}
	})
}
