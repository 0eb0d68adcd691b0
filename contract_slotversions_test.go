package tidings_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// gone is the state of an object that has been deleted, which comes after all others.
const gone = "~"

// versionless is an informer of slots whose transform removes the versions, so that the cache cannot
// tell an older state of its 40 objects.
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

// TestP02_SlotsOfObjectsWithoutVersions adds slots. Their list arrives late, or the watch lags behind it.
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
