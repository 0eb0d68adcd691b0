package contract_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/source"
)

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

// versionless is an informer of slots whose transform removes the versions, so that the cache
// cannot tell an older state of its 40 objects.
type versionless struct {
	*slotted
	informer *tidings.Informer[*corev1.ConfigMap]
	states   map[string][]string // that a handler was told of, by key
}

// withoutVersions tests an informer that holds the first half of the slots.
func withoutVersions(t *testing.T, f func(v *versionless)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		v := &versionless{
			slotted: &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, half(0))},
			states:  map[string][]string{},
		}
		v.have(40)
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{
			Namespace: "default", Slots: v.slots,
			Transform: tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				c.ResourceVersion = ""
				return c, nil
			}),
		})
		w.must(err)
		w.probe, v.informer = newProbe(t, i, nil), i
		_, err = i.AddHandler(tidings.HandlerFunc[*corev1.ConfigMap](func(e tidings.Event[*corev1.ConfigMap]) {
			n := e.Object().Labels["n"]
			if e.Type == tidings.Deleted {
				n = gone
			}
			v.states[e.Key()] = append(v.states[e.Key()], n)
		}), tidings.HandlerOptions{})
		w.must(err)
		v.start()
		f(v)
		v.after(30 * time.Minute)
		for key, seen := range v.states {
			for n := 1; n < len(seen); n++ {
				if seen[n] < seen[n-1] || seen[n] == gone {
					t.Errorf("%s went through the states %v", key, seen)
					break
				}
			}
		}
	})
}

// addHalf adds the second half of the slots, and calls f while they are listed.
func (v *versionless) addHalf(f func()) {
	added := make(chan error, 1)
	go func() { added <- v.slots.Add(v.ctx, half(1)) }()
	f()
	v.must(<-added)
}

// updateAll writes a state of each object.
func (v *versionless) updateAll(n string) {
	for o := range 40 {
		v.update(fmt.Sprintf("o%03d", o), n)
	}
}

// TestP02_SlotsOfObjectsWithoutVersions adds slots. Their list arrives late, or the watch lags
// behind it.
func TestP02_SlotsOfObjectsWithoutVersions(t *testing.T) {
	for name, fault := range map[string]struct {
		verb  string
		fault apisim.Fault
	}{
		"a list that is old": {"list", apisim.Stall(1, time.Second)},
		"a watch that lags":  {"watch", apisim.Stall(1, 10*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			withoutVersions(t, func(v *versionless) {
				v.server.Inject(apisim.Match{Verb: fault.verb}.Nth(1), fault.fault)
				if fault.verb == "watch" {
					v.server.CutConnections()
					v.after(2 * time.Second)
					v.updateAll("1")
					v.updateAll("2")
				}
				v.addHalf(func() {
					v.after(500 * time.Millisecond)
					v.updateAll("3")
				})
				v.after(30 * time.Minute)
				for key, c := range v.informer.Lister().All() {
					if c.Labels["n"] != "3" {
						t.Errorf("%s is in the state %s", key, c.Labels["n"])
					}
				}
				if n := v.informer.Lister().Len(); n != 40 || len(v.states) != 40 {
					t.Errorf("%d objects are cached, %d were reported", n, len(v.states))
				}
			})
		})
	}
}

// TestP02_ARelistThatIsOlderThanTheListOfSlots has a relist under way while slots are listed: it is
// void.
func TestP02_ARelistThatIsOlderThanTheListOfSlots(t *testing.T) {
	withoutVersions(t, func(v *versionless) {
		v.after(time.Minute)
		v.server.Inject(apisim.Match{Verb: "list"}.Nth(1), apisim.Refuse(503, 10*time.Second))
		v.server.Inject(apisim.Match{Verb: "watch", Query: map[string]string{"sendInitialEvents": "true"}}.Nth(1),
			apisim.Stall(1, 60*time.Second))
		v.addHalf(func() {
			synctest.Wait()
			v.update("o000", "1")
			v.server.Compact()
			v.server.CutConnections()
			v.after(5 * time.Second)
			v.updateAll("3")
			v.create("new", "3")
		})
	})
}

func TestP02_ReplayedStatesAreDropped(t *testing.T) {
	s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", "5", "5"), stateAt("b", "4", "4")}}}
	runSource(t, s, informerOptions{}, func(i sourced) {
		i.told.Take()
		i.send(source.Modified, stateAt("a", "7", "7"))
		i.send(source.Modified, stateAt("a", "6", "6")) // older
		i.send(source.Modified, stateAt("a", "7", "7")) // the same
		i.send(source.Deleted, stateAt("a", "3", "3"))  // of an older history
		i.send(source.Deleted, stateAt("b", "8", "4"))
		i.send(source.Added, stateAt("b", "4", "4")) // it was deleted after that
		i.send(source.Modified, stateAt("a", "10", "10"))
		expect(t, i.told.Texts(), "Updated default/a 5→7", "Deleted default/b 4",
			"Updated default/a 7→10")
		if h := i.Health(); h.Stale != 4 || h.Version != "10" {
			t.Errorf("health is %+v", h)
		}
	})
}

func TestP02_WithoutVersionsWhatArrivesIsApplied(t *testing.T) {
	for _, odd := range []string{"", "odd", "007"} {
		t.Run(fmt.Sprintf("version %q", odd), func(t *testing.T) {
			s := &fakeSource{lists: [][]*corev1.ConfigMap{{stateAt("a", odd, "1")}}}
			runSource(t, s, informerOptions{}, func(i sourced) {
				i.told.Take()
				i.send(source.Modified, stateAt("a", odd, "2"))
				i.send(source.Modified, stateAt("a", "", "3"))
				i.send(source.Deleted, stateAt("a", "", "3"))
				expect(t, i.told.Texts(), "Updated default/a 1→2", "Updated default/a 2→3",
					"Deleted default/a 3")
			})
		})
	}
}
