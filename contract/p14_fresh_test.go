package contract_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// aBookmark is the longest time to the next bookmark: the interval of the server and a second for
// all else.
const aBookmark = time.Minute + time.Second

func TestP14_WriteThatTheFilterHidesIsReachedWithTheNextBookmark(t *testing.T) {
	s := tidings.Selection{Namespace: "default", Labels: "n in (1,2)"}
	propertyWith(t, tidings.FactoryOptions{}, s, func(w *world) {
		w.start()
		w.create("hidden", "3")
		if took := w.waitFor(w.versions["hidden"]); took == 0 || took > aBookmark {
			w.Errorf("a hidden write was reached after %v, want the next bookmark", took)
		}
		// Later events vouch for all events before them.
		w.create("hidden-too", "3")
		hidden := w.versions["hidden-too"]
		w.create("seen", "1")
		if took := w.waitFor(hidden); took != 0 {
			w.Errorf("a hidden write before one that is seen took %v", took)
		}
		// An object that leaves the selection, and one that is hidden until then.
		w.update("seen", "3")
		if took := w.waitFor(w.versions["seen"]); took != 0 || w.probe.get("default/seen") != "" {
			w.Errorf("after %v the cache holds %q", took, w.probe.get("default/seen"))
		}
		w.update("hidden", "2")
		if took := w.waitFor(w.versions["hidden"]); took != 0 ||
			version(w.probe.get("default/hidden")) != w.versions["hidden"] {
			w.Errorf("after %v the cache holds %q", took, w.probe.get("default/hidden"))
		}
	})
}

func TestP14_ObjectThatIsDeletedAgainIsReachedAllTheSame(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		for range 5 {
			w.create("brief", "1")
			made := w.versions["brief"]
			gone, err := w.server.Delete(context.Background(), configMaps, "default", "brief")
			if err != nil {
				w.Fatal(err)
			}
			if took := w.waitFor(made); took != 0 {
				w.Errorf("the create took %v", took)
			}
			if took := w.waitFor(gone.(*corev1.ConfigMap).ResourceVersion); took != 0 ||
				w.probe.get("default/brief") != "" {
				w.Errorf("after the delete and %v the cache holds %q",
					took, w.probe.get("default/brief"))
			}
		}
	})
}

func TestP14_EveryNamespaceHasToReachTheVersion(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		w.createIn("a", "x", "1")
		if took := w.waitFor(w.versions["x"]); took == 0 || took > aBookmark {
			w.Errorf("a write in one namespace was reached after %v, want a bookmark of the other",
				took)
		}
		w.createIn("a", "y", "1")
		y := w.versions["y"]
		w.createIn("b", "y", "1")
		w.createIn("a", "z", "1")
		if took := w.waitFor(y); took != 0 {
			w.Errorf("a version that later events in both namespaces vouch for took %v", took)
		}
		w.createIn("c", "elsewhere", "1")
		if took := w.waitFor(w.versions["elsewhere"]); took > aBookmark {
			w.Errorf("a write in another namespace was reached after %v", took)
		}
	})
}

func TestP14_WriteIsReachedThroughARelistToo(t *testing.T) {
	for name, o := range streamedAndPaged {
		t.Run(name, func(t *testing.T) {
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				w.create("a", "1")
				w.start()
				w.server.Restart(apisim.RestartOptions{Down: time.Second})
				w.update("a", "2")
				w.server.Compact()
				if took := w.waitFor(w.versions["a"]); took > 10*time.Second ||
					version(w.probe.get("default/a")) != w.versions["a"] {
					w.Errorf("after %v the cache holds %q", took, w.probe.get("default/a"))
				}
			})
		})
	}
}

// TestP14_InstanceThatLags waits for a version while the watch is on a server that is half a minute
// behind, or has been moved to one.
func TestP14_InstanceThatLags(t *testing.T) {
	withInstances(t, 2, tidings.FactoryOptions{}, func(w *world, all []*apisim.Instance) {
		const lag = 30 * time.Second
		all[1].SetLag(lag)
		w.create("a", "1")
		only(all, 0)
		w.start()
		reach := func(n string, least, most time.Duration) {
			w.Helper()
			w.update("a", n)
			took := w.waitFor(w.versions["a"])
			got := w.probe.get("default/a")
			if version(got) != w.versions["a"] || took < least || took > most {
				w.Errorf("%s: after %v the cache holds %q", n, took, got)
			}
		}
		reach("2", 0, 0)
		all[1].SetAvailable(true)
		all[0].SetAvailable(false)
		reach("3", lag, lag+time.Second)
		reach("4", lag, lag)
		only(all, 0)
		reach("5", 0, 2*time.Second)
	})
}

func TestP14_WaitForIncludesNamespacesThatWereAdded(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		i := w.probe.informer()
		w.createIn("c", "x", "1")
		w.must(i.AddNamespace("c"))
		w.must(i.WaitFor(w.ctx, w.versions["x"]))
		w.holds("a", "b", "c")
		// One that is gone is waited for no more, even if it could never be read.
		w.gate.set(func(rw http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/namespaces/d/") && refuse(403, "Forbidden")(rw, r)
		})
		w.must(i.AddNamespace("d"))
		w.settle()
		w.createIn("a", "y", "1")
		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
		defer cancel()
		if err := i.WaitFor(ctx, w.versions["y"]); !errors.Is(err, context.DeadlineExceeded) ||
			!strings.Contains(err.Error(), "Forbidden") {
			w.Errorf("with a namespace that cannot be read: %v", err)
		}
		w.must(i.RemoveNamespace("d"))
		if err := i.WaitFor(w.ctx, w.versions["y"]); err != nil {
			w.Error(err)
		}
	})
}

// TestP14_AWatchOfSlotsReachesVersions changes an object of another slot. The next bookmark has its
// version.
func TestP14_AWatchOfSlotsReachesVersions(t *testing.T) {
	withShards(t, "all", func(s *slotted) {
		s.have(40)
		s.start()
		held := s.heldState()
		for i := range 40 {
			name := fmt.Sprintf("o%03d", i)
			if _, ok := held["default/"+name]; ok {
				continue
			}
			s.update(name, "1")
			before := s.health().Version
			s.after(2 * time.Minute)
			if got, want := s.health().Version, s.versions[name]; got != want || before == want {
				t.Errorf("the version is %s and then %s, want %s", before, got, want)
			}
			return
		}
		t.Error("all objects are held")
	})
}

func TestP14_WaitForNamesTheVersion(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		err := w.probe.informer().WaitFor(ctx, "999999999")
		expectError(w, "waiting for the future", err, context.DeadlineExceeded, "999999999")
		if err := w.probe.informer().WaitFor(ctx, "soon"); err == nil {
			w.Error("WaitFor accepts a version that is no number")
		}
	})
}
