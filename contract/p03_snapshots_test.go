package contract_test

import (
	"maps"
	"net/http"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

func TestP03_SnapshotAndCacheHaveTheirVersions(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		held, before := w.probe.snapshot(), w.serverState()
		heldVersion, _ := held()
		w.update("a", "2")
		w.create("b", "1")
		synctest.Wait()
		if v, state := held(); v != heldVersion || v == "" || !maps.Equal(state, before) {
			w.Errorf("the snapshot of version %s has %v at %s, want %v",
				heldVersion, state, v, before)
		}
		if v, _ := w.probe.snapshot()(); v != w.versions["b"] {
			w.Errorf("the cache has version %s, the last write %s", v, w.versions["b"])
		}
		// The version of the cache moves with the batch of a relist.
		heldVersion, _ = w.probe.snapshot()()
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if v, _ := w.probe.snapshot()(); v != heldVersion {
				w.Errorf("during %s the cache has version %s", r.URL, v)
			}
			return false
		})
		w.server.SetAvailable(false)
		w.remove("a")
		w.create("c", "1")
		w.server.Compact()
		w.server.SetAvailable(true)
		w.settle()
		if v, _ := w.probe.snapshot()(); v != w.versions["c"] || w.health().Lists != 2 {
			w.Errorf("after list %d the cache has version %s, want %s", w.health().Lists, v,
				w.versions["c"])
		}
	})
}

// TestP03_AFrozenListerReadsOneState: every read of it has the state in which it was made.
func TestP03_AFrozenListerReadsOneState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		informer := mapsOf(w)
		w.create("x", "1")
		w.start()
		l := informer.Lister()
		frozen := l.Frozen()
		w.create("y", "1")
		w.must(informer.WaitFor(w.ctx, w.versions["y"]))
		if got := readsOf(frozen.Frozen()); got != [5]int{1, 1, 1, 1, 1} {
			t.Errorf("the frozen lister reads %v objects", got)
		}
		if got := readsOf(l); got != [5]int{2, 2, 2, 2, 2} {
			t.Errorf("the lister reads %v objects", got)
		}
	})
}

// readsOf counts the objects that each way to read them finds.
func readsOf(l tidings.Lister[*corev1.ConfigMap]) (counts [5]int) {
	counts[0] = l.Len()
	for range l.All() {
		counts[1]++
	}
	for range l.Namespace("default").Select(labels.Everything()) {
		counts[2]++
	}
	for _, name := range []string{"x", "y"} {
		if _, err := l.Get("default/" + name); err == nil {
			counts[3]++
		}
		if _, err := l.Namespace("default").Get(name); err == nil {
			counts[4]++
		}
	}
	return counts
}
