package contract_test

import (
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestP16_ObjectsAhead sends once an object, and one that the server does not have, of versions
// far ahead of the server's own. The next list is right again.
func TestP16_ObjectsAhead(t *testing.T) {
	object := func(name string, version int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,`+
			`"namespace":"default","uid":"u","resourceVersion":"%d","labels":{"n":"wrong"}}}`,
			name, version)
	}
	const ahead = 1_000_000_000
	a, ghost := object("a", ahead), object("ghost", ahead)
	list := `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`
	added := `{"type":"ADDED","object":`
	for verb, answer := range map[string]string{
		"list":  list + a + "," + ghost + "]}",
		"watch": added + a + "}\n" + added + ghost + "}\n" + added + object("a", 1) + "}\n",
	} {
		t.Run(verb, func(t *testing.T) {
			property(t, func(w *world) {
				w.server.RefuseStreamedLists(true)
				w.create("a", "1")
				refused := map[string]int{"watch": 1}[verb] // the streamed list
				w.inject(apisim.Match{Verb: verb, Resource: "configmaps", Skip: refused, Times: 1},
					answered("application/json", answer))
				w.startFactory()
				w.after(time.Minute)
				w.away(func() { w.update("a", "2") })
				w.after(time.Minute)
				w.agree()
			})
		})
	}
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

// TestP16_RewindThatTheServerHasPassed restores a backup, and writes until the server is beyond the
// version that informers have reached, before they reach it again.
func TestP16_RewindThatTheServerHasPassed(t *testing.T) {
	for name, lost := range map[string]func(w *world){
		"an update": func(w *world) { w.update("a", "lost") },
		"a create":  func(w *world) { w.create("lost", "lost") },
		"a delete":  func(w *world) { w.remove("a") },
	} {
		for end, forgotten := range map[string]bool{"resumed": false, "expired": true} {
			t.Run(name+", "+end, func(t *testing.T) {
				property(t, func(w *world) {
					w.create("a", "1")
					w.create("other", "1")
					w.start()
					backup := w.server.Snapshot()
					lost(w)
					w.after(time.Second)
					w.server.SetAvailable(false)
					w.server.Rewind(backup)
					for range 5 {
						w.update("other", "2")
					}
					if forgotten {
						w.server.Compact()
					}
					w.after(15 * time.Second)
					w.server.SetAvailable(true)
					w.settle()
					w.agree()
				})
			})
		}
	}
}

// TestP16_ARewindWithinAMoment sets a server back and cuts its connections, as a restart does, once
// or twice within ten seconds; meanwhile writes elsewhere bring it to the version that was reached.
func TestP16_ARewindWithinAMoment(t *testing.T) {
	for _, cuts := range []int{1, 2} {
		for further := range 4 {
			t.Run(fmt.Sprintf("%d cuts, %d versions beyond the reached one", cuts, further), func(t *testing.T) {
				property(t, func(w *world) {
					w.loseFour()
					w.after(7 * time.Second)
					for i := range 4 + further {
						w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
					}
					if further == 0 {
						w.after(100 * time.Millisecond)
					}
					if cuts > 1 {
						w.server.CutConnections()
					}
					w.after(10 * time.Minute)
					if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
						w.Errorf("ten minutes later the cache holds %v, the server %v", got, want)
					}
				})
			})
		}
	}
}

// TestP16_ARewindBehindAProxyThatCuts has a proxy that ends connections after 45 seconds, before a
// bookmark comes, and a collection that is never quiet.
func TestP16_ARewindBehindAProxyThatCuts(t *testing.T) {
	property(t, func(w *world) {
		w.loseFour()
		for i := range 8 {
			w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
		}
		w.after(100 * time.Millisecond)
		for n := range 240 { // twenty minutes
			w.update("a", fmt.Sprint(n))
			w.after(5 * time.Second)
			if n%9 == 8 {
				w.server.CutConnections()
			}
		}
		w.after(time.Second)
		if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
			w.Errorf("twenty minutes later the cache holds %v, the server %v; checks %d", got, want, w.health().Checks)
		}
	})
}

// restoreAndPass sets the server back while it is down, has writes elsewhere bring it beyond the version
// that was reached, and lets an hour pass.
func (w *world) restoreAndPass(backup *apisim.Snapshot) {
	w.Helper()
	w.server.SetAvailable(false)
	w.server.Rewind(backup)
	for i := range 20 {
		w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
	}
	w.after(20 * time.Second)
	w.server.SetAvailable(true)
	w.after(time.Hour)
}

// TestP16_ARewindAfterDeletes sets a server back whose last changes were deletes of objects that it
// does not have at the earlier state either, so that they say nothing about its history. Meanwhile
// it passes the version that was reached.
func TestP16_ARewindAfterDeletes(t *testing.T) {
	for _, deletes := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(deletes, " deletes"), func(t *testing.T) {
			property(t, func(w *world) {
				backup := w.backUp()
				w.update("a", "lost")
				for i := range deletes {
					w.create(fmt.Sprintf("lost%d", i), "1")
				}
				for i := range deletes {
					w.remove(fmt.Sprintf("lost%d", i))
				}
				w.after(time.Second)
				w.restoreAndPass(backup)
				if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
					w.Errorf("an hour later the cache holds %v, the server %v; checks %d", got, want, w.health().Checks)
				}
			})
		})
	}
}

// TestP16_ARewindAfterASlotHasGone sets a server back by more than the last change, whose slot has
// gone.
func TestP16_ARewindAfterASlotHasGone(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint("remove ", remove), func(t *testing.T) {
			withSlots(t, tidings.FactoryOptions{}, tidings.AllSlots(), func(s *slotted) {
				s.haveNamespaces("elsewhere")
				s.have(10)
				l := s.follow()
				l.Rewind(true)
				s.start()
				s.after(3 * time.Minute)
				backup := s.server.Snapshot()
				for i := range 5 {
					s.update(fmt.Sprintf("o%03d", i), "lost")
				}
				s.create("last", "lost")
				s.after(time.Second)
				if remove {
					var set tidings.SlotSet
					set.Add(tidings.ByUID.Of(s.uids["last"], ""))
					s.slots.Remove(set)
				}
				s.after(3 * time.Minute) // bookmarks
				s.restoreAndPass(backup)
				s.agree(l)
			})
		})
	}
}

// TestP16_FailedTransformLeavesNoStateOfAnOldHistory: it would look newer than all that
// comes.
func TestP16_FailedTransformLeavesNoStateOfAnOldHistory(t *testing.T) {
	transformed(t, func(w *world, fail func(func(tidings.Object) bool)) {
		w.create("a", "1")
		w.start()
		backup := w.server.Snapshot()
		for n := range 20 {
			w.update("a", fmt.Sprint("new-", n))
		}
		synctest.Wait()
		fail(isNamed("a"))
		w.server.Rewind(backup)
		time.Sleep(time.Hour) // the watch is quiet, and the server's version is asked for
		fail(func(tidings.Object) bool { return false })
		w.update("a", "2")
		w.settle()
		w.agree()
	})
}
