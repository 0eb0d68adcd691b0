package cache_test

import (
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestSynced goes through the points of sync: the cache is complete, the handler has
// returned from its initial adds. Both have a checker with the same result.
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

// TestStoreVersionNeverAhead: for a reader that reads the version first, the cache is never
// behind its version.
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
			case claimed == "0": // the version of the empty list
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
