package tidings_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// withInstances runs a test for every kind of informer, which reach some API servers by a load
// balancer.
func withInstances(
	t *testing.T, n int, o tidings.FactoryOptions, test func(w *world, all []*apisim.Instance),
) {
	t.Helper()
	propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
		var all []*apisim.Instance
		for range n {
			all = append(all, w.server.AddInstance())
		}
		w.reconnect(o, func(c *rest.Config) { *c = *w.server.Balance(all...) })
		test(w, all)
	})
}

// only makes one of the instances the only one that accepts connections.
func only(all []*apisim.Instance, which int) {
	for n, i := range all {
		i.SetAvailable(n == which)
	}
}

// TestP02_InstancesThatLag moves informers between three servers with different lags, while objects
// are written, deleted and created again. Handlers check that no object goes back.
func TestP02_InstancesThatLag(t *testing.T) {
	for name, o := range map[string]tidings.FactoryOptions{"streamed": {}, "in pages": paged} {
		t.Run(name, func(t *testing.T) {
			withInstances(t, 3, o, func(w *world, all []*apisim.Instance) {
				w.create("a", "0")
				w.create("b", "0")
				all[1].SetLag(7 * time.Second)
				l := w.follow()
				w.startFactory()
				for n := range 60 {
					if n%10 == 0 {
						all[2].SetLag(0)
						all[2].SetLag(apisim.Frozen)
					}
					w.update("a", fmt.Sprint(n))
					if n%3 == 0 {
						w.remove("b")
						w.after(time.Second)
						w.create("b", fmt.Sprint(n))
					}
					if n%4 == 0 {
						w.server.CutConnections()
					}
					w.after(3 * time.Second)
				}
				for _, i := range all {
					i.SetLag(0)
				}
				w.settle()
				l.sum()
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

// TestP15_InstanceThatStandsStill measures how long an informer holds on to a server that stands
// still: in a watch with bookmarks, in one that has had none, and in one that is not begun.
func TestP15_InstanceThatStandsStill(t *testing.T) {
	o := tidings.FactoryOptions{Transport: tidings.Transport{WatchTimeout: time.Hour}}
	withInstances(t, 1, o, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		w.start()
		w.after(5 * time.Minute / 2)
		ends := func(after time.Duration, says string) {
			w.Helper()
			all[0].SetPaused(true)
			w.after(after - 5*time.Second)
			if err := w.health().LastError; err != nil && strings.Contains(err.Error(), says) {
				w.Errorf("too early, health says: %v", err)
			}
			w.after(10 * time.Second)
			if err := w.health().LastError; err == nil || !strings.Contains(err.Error(), says) {
				w.Errorf("after %v health does not say %q, but %v", after, says, err)
			}
		}
		goOn := func() {
			all[0].SetPaused(false)
			all[0].CutConnections()
			w.settle()
			w.agree()
		}
		w.update("a", "2")
		w.after(time.Second)
		ends(4*time.Minute, "was quiet for 4 times")
		goOn() // the next watch has two bookmarks
		all[0].CutConnections()
		w.after(10 * time.Second)
		w.update("a", "3")
		w.after(time.Second)
		ends(4*time.Minute, "was quiet for 4 times") // without a bookmark
		all[0].CutConnections()
		w.after(5 * time.Second) // a watch begins now
		ends(2*time.Minute, "nothing for 2m0s")
		goOn()
	})
}

// TestP15_InstanceWhoseCacheIsFrozen has a watch resumed at a server that does not have its
// version, and never gets it.
func TestP15_InstanceWhoseCacheIsFrozen(t *testing.T) {
	withInstances(t, 2, tidings.FactoryOptions{}, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		all[1].SetLag(apisim.Frozen)
		only(all, 0)
		w.start()
		w.after(3 * time.Minute)
		w.update("a", "2")
		w.after(time.Second)
		all[1].SetLag(0)
		all[1].SetAvailable(true)
		all[1].SetLag(apisim.Frozen)
		w.update("a", "3")
		w.after(time.Second)
		all[0].SetAvailable(false)
		w.update("a", "4")
		for range 3 { // it is left again and again, as it may be the next one by chance
			w.after(4*time.Minute + 10*time.Second)
			at, err := w.health().LastErrorAt, w.health().LastError
			if time.Since(at) > time.Minute || !strings.Contains(err.Error(), "was quiet for 4 times") {
				w.Errorf("health says: %v, %v ago", err, time.Since(at))
			}
		}
		only(all, 0)
		if took := w.waitFor(w.versions["a"]); took > 10*time.Second {
			w.Errorf("the cache was behind for %v", took)
		}
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

// TestP01_InstanceThatHasJustStarted has watches resumed at a server whose history begins later.
func TestP01_InstanceThatHasJustStarted(t *testing.T) {
	withInstances(t, 2, tidings.FactoryOptions{}, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		only(all, 0)
		l := w.follow()
		w.start()
		for n := range 5 {
			w.update("a", fmt.Sprint(n))
			w.update("a", fmt.Sprint("second-", n))
			only(all, n%2)
			w.after(time.Minute)
			l.sum()
		}
		if h := w.health(); h.Lists > 6 {
			w.Errorf("%d lists", h.Lists)
		}
	})
}

// TestP02_FirstListOfAnInstanceThatLags lists from a server that lags, and watches at another one.
func TestP02_FirstListOfAnInstanceThatLags(t *testing.T) {
	withInstances(t, 2, paged, func(w *world, all []*apisim.Instance) {
		w.create("a", "1")
		all[0].SetLag(apisim.Frozen)
		w.update("a", "2")
		w.remove("a")
		w.create("a", "3")
		l := w.follow()
		w.startFactory()
		w.settle()
		w.server.CutConnections()
		all[0].SetLag(0)
		w.settle()
		l.sum()
		ctx, stop := context.WithTimeout(w.ctx, time.Minute)
		defer stop()
		w.must(w.probe.informer().WaitFor(ctx, w.versions["a"]))
	})
}
