package tidings_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

// aBookmark is how long the next bookmark takes at most: the interval of the server and
// something for what comes between.
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
	propertyWith(t, tidings.FactoryOptions{}, tidings.Selection{Namespace: "default", Labels: "n in (1,2)"}, func(w *world) {
		w.start()
		w.create("hidden", "3")
		if took := w.waitFor(w.versions["hidden"]); took == 0 || took > aBookmark {
			w.Errorf("a hidden write was reached after %v, want the next bookmark", took)
		}
		// Later events vouch for what came before them, whatever that was.
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
		if took := w.waitFor(w.versions["hidden"]); took != 0 || version(w.probe.get("default/hidden")) != w.versions["hidden"] {
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
			if took := w.waitFor(gone.(*corev1.ConfigMap).ResourceVersion); took != 0 || w.probe.get("default/brief") != "" {
				w.Errorf("after the delete and %v the cache holds %q", took, w.probe.get("default/brief"))
			}
		}
	})
}

func TestP14_EveryNamespaceHasToReachTheVersion(t *testing.T) {
	inNamespaces(t, func(w *world) {
		w.start()
		w.createIn("a", "x", "1")
		if took := w.waitFor(w.versions["x"]); took == 0 || took > aBookmark {
			w.Errorf("a write in one namespace of two was reached after %v, want the next bookmark of the other", took)
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
	for name, o := range map[string]tidings.FactoryOptions{"streamed": {}, "in pages": {Transport: tidings.Transport{NoStreamedLists: true, PageSize: 2}}} {
		t.Run(name, func(t *testing.T) {
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				w.create("a", "1")
				w.start()
				w.server.Restart(apisim.RestartOptions{Down: time.Second})
				w.update("a", "2")
				w.server.Compact()
				if took := w.waitFor(w.versions["a"]); took > 10*time.Second || version(w.probe.get("default/a")) != w.versions["a"] {
					w.Errorf("after %v the cache holds %q", took, w.probe.get("default/a"))
				}
				w.create("b", "1")
				w.stop()
				synctest.Wait()
				if err := w.probe.informer().WaitFor(context.Background(), "999999999"); !errors.Is(err, tidings.ErrStopped) {
					w.Errorf("waiting on a stopped informer: %v", err)
				}
			})
		})
	}
}

// TestP14_VersionsLongerThanAnyInteger waits for versions that no integer type holds,
// and which a comparison as text, or as a floating-point number, would get wrong.
func TestP14_VersionsLongerThanAnyInteger(t *testing.T) {
	nines, round := strings.Repeat("9", 40), "1"+strings.Repeat("0", 40)
	s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", nines, "1")}}}
	runSource(t, s, func(i *tidings.Informer[*corev1.ConfigMap], _ *record, send func(source.EventType, *corev1.ConfigMap)) {
		reached := func(version string) bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return i.WaitFor(ctx, version) == nil
		}
		if !reached("18446744073709551616") || !reached(nines) || reached(round) {
			t.Error("at 40 nines")
		}
		send(source.Modified, stateAt("a", round, "2"))
		if !reached(round) || reached(round[:40]+"1") {
			t.Error("at 10 to the 40th")
		}
		send(source.Modified, stateAt("a", nines, "3")) // older
		send(source.Bookmark, &corev1.ConfigMap{})
		if got, err := i.Lister().Get("default/a"); err != nil || got.Labels["n"] != "2" || !reached(round) {
			t.Errorf("the cache holds %v, %v", got, err)
		}
	})
}

// TestP15_WatchThatFallsSilentIsResumed has the connection stay open and bring nothing
// any more. The guard is the timer of the reflector's watched.Next.
func TestP15_WatchThatFallsSilentIsResumed(t *testing.T) {
	propertyWith(t, tidings.FactoryOptions{Transport: tidings.Transport{WatchTimeout: 24 * time.Hour}}, tidings.Selection{Namespace: "default"}, func(w *world) {
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
		if h.State != tidings.Watching || h.Lists != 1 || h.Watches != 2 || h.LastError == nil || !strings.Contains(h.LastError.Error(), "quiet") {
			w.Errorf("health is %+v", h)
		}
	})
}

// TestP15_ConnectionThatIsDeadFromTheBeginning never brings a bookmark to learn from:
// its timeout is what ends it. The guard is the timeout of the context that the
// reflector's openStream makes.
func TestP15_ConnectionThatIsDeadFromTheBeginning(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.server.Inject(apisim.Match{Verb: "watch"}.Nth(1), apisim.Stall(3, 0))
		w.start()
		w.update("a", "2")
		time.Sleep(11 * time.Minute)
		synctest.Wait()
		w.agree()
		if h := w.probe.informer().Health(); h.State != tidings.Watching || h.Lists != 1 {
			w.Errorf("health is %+v", h)
		}
	})
}

// TestP16_RestoredBackupIsFoundWithinMinutes restores an old state under a running
// informer, with versions that begin again from there. Nothing on the watch tells: it
// waits for a version that is far away. The guards are Reflector.doubt, the comparison in
// Reflector.probe, the new history in Reflector.endList, and that Reflector.stage takes
// nothing of the cache then.
func TestP16_RestoredBackupIsFoundWithinMinutes(t *testing.T) {
	for name, down := range map[string]time.Duration{"at once": 0, "after a minute": time.Minute} {
		t.Run(name, func(t *testing.T) {
			for form, o := range map[string]tidings.FactoryOptions{"streamed": {}, "in pages": {Transport: tidings.Transport{NoStreamedLists: true, PageSize: 2}}} {
				t.Run(form, func(t *testing.T) {
					propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
						w.create("kept", "1")
						w.create("changed", "1")
						w.create("deleted", "1")
						w.start()
						backup := w.server.Snapshot()
						var told record
						w.probe.handle(told.handle, tidings.HandlerOptions{})
						w.update("changed", "2")
						w.remove("deleted")
						for n := range 100 {
							w.update("changed", fmt.Sprint("more-", n))
						}
						w.create("lost", "1")
						synctest.Wait()
						w.agree()
						told.take()

						w.server.SetAvailable(false)
						time.Sleep(down)
						w.server.Rewind(backup)
						w.server.SetAvailable(true)
						restored := time.Now()
						w.create("new", "1")
						for limit := restored.Add(11 * time.Minute); w.probe.get("default/new") == "" && time.Now().Before(limit); {
							time.Sleep(time.Second)
							synctest.Wait()
						}
						w.Logf("found after %v", time.Since(restored))
						w.agree()
						expect(w, told.texts(),
							"Deleted default/lost tombstone 1", "Updated default/changed more-99→1",
							"Added default/deleted 1", "Updated default/kept 1→1", "Added default/new 1")
						// The new history is followed, and waited for, as the old one was.
						w.update("kept", "2")
						if took := w.waitFor(w.versions["kept"]); took != 0 {
							w.Errorf("a write to the restored server took %v", took)
						}
						w.agree()
					})
				})
			}
		})
	}
}

// TestP16_QuietServerIsNotListedAgain has a server that sends no bookmarks: the look at
// its version is all that silence costs. The guard is the comparison of the versions in
// Reflector.probe.
func TestP16_QuietServerIsNotListedAgain(t *testing.T) {
	propertyWith(t, tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: true}}, tidings.Selection{Namespace: "default"}, func(w *world) {
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
		if h := w.probe.informer().Health(); h.Lists != 1 || h.State != tidings.Watching {
			w.Errorf("health is %+v", h)
		}
		w.create("another", "1")
		synctest.Wait()
		w.agree()
	})
}

// TestP02_ConsistentFirstListIsOfTheNewestState reads its first list from a server that lags
// behind what an earlier process has written.
func TestP02_ConsistentFirstListIsOfTheNewestState(t *testing.T) {
	for consistent, want := range map[bool]string{true: "2", false: "1"} {
		t.Run(fmt.Sprint(consistent), func(t *testing.T) {
			o := tidings.FactoryOptions{Transport: tidings.Transport{NoStreamedLists: true, ConsistentFirstList: consistent}}
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
