package tidings_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// aBookmark is the longest time to the next bookmark: the interval of the server and a second for
// all else.
const aBookmark = time.Minute + time.Second

// waitFor waits for a version and returns how long that took.
func (w *world) waitFor(version string) time.Duration {
	w.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, 20*time.Minute)
	defer cancel()
	if err := w.probe.informer().WaitFor(ctx, version); err != nil {
		w.Fatal(err)
	}
	return time.Since(began)
}

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

// TestP15_WatchThatFallsSilentIsResumed has the connection stay open and bring nothing
// any more. The guard is the timer of the reflector's watched.Next.
func TestP15_WatchThatFallsSilentIsResumed(t *testing.T) {
	var o tidings.FactoryOptions
	o.Transport.WatchTimeout = 24 * time.Hour
	propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
		w.create("a", "1")
		// The object, the end of the list, two bookmarks, and then nothing.
		w.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Stall(5, 0))
		w.start()
		time.Sleep(2*time.Minute + 30*time.Second)
		w.update("a", "2")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if got := w.probe.get("default/a"); label(got) != "1" {
			w.Fatalf("the cache holds %q, although nothing could bring that", got)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		w.agree()
		h := w.probe.informer().Health()
		if h.State != tidings.StateWatching || h.Lists != 1 || h.Watches != 2 || h.LastError == nil ||
			!strings.Contains(h.LastError.Error(), "quiet") {
			w.Errorf("health is %+v", h)
		}
	})
}

// TestP16_QuietServerIsNotListedAgain has a server that sends no bookmarks: the check of
// its version is all that silence costs. The guard is the comparison of the versions in
// Reflector.probe.
func TestP16_QuietServerIsNotListedAgain(t *testing.T) {
	var o tidings.FactoryOptions
	o.Transport.NoStreamedLists = true
	propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
		w.server.Inject(apisim.Match{Verb: "watch"}, apisim.DropBookmarks())
		for n := range 10 {
			w.create(fmt.Sprint("object-", n), "1")
		}
		w.start()
		w.server.ForgetRequests()
		whole := 0
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if query := r.URL.Query(); query.Get("watch") == "" && query.Get("limit") != "1" {
				whole++
			}
			return false
		})
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(w.server.Requests()); whole != 0 || n > 26 {
			w.Errorf("%d whole lists and %d requests in an hour", whole, n)
		}
		if h := w.probe.informer().Health(); h.Lists != 1 || h.State != tidings.StateWatching {
			w.Errorf("health is %+v", h)
		}
		w.create("another", "1")
		synctest.Wait()
		w.agree()
	})
}

// TestP02_ConsistentFirstListIsOfTheNewestState reads its first list from a server that lags behind
// the writes of an earlier process.
func TestP02_ConsistentFirstListIsOfTheNewestState(t *testing.T) {
	for consistent, want := range map[bool]string{true: "2", false: "1"} {
		t.Run(fmt.Sprint(consistent), func(t *testing.T) {
			o := tidings.FactoryOptions{Transport: tidings.Transport{
				NoStreamedLists: true, ConsistentFirstList: consistent,
			}}
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				w.create("a", "1")
				w.server.Inject(apisim.Match{}, apisim.Lag())
				w.update("a", "2")
				w.server.Inject(apisim.Match{Verb: "watch"}, apisim.Delay(time.Hour))
				w.start()
				if got := label(w.probe.get("default/a")); got != want {
					w.Errorf("the cache holds %q, want %q", got, want)
				}
			})
		})
	}
}
