package controller_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS2_WritesThatNoWatchShows: the next owner does not wait for their versions.
func TestS2_WritesThatNoWatchShows(t *testing.T) {
	for name, test := range map[string]struct {
		selection tidings.Selection
		write     func(ctx context.Context, w *world, p *replica) error // by a call
	}{
		"of another namespace": {tidings.Selection{Namespace: "a"}, func(ctx context.Context, w *world, p *replica) error {
			o := create(w, configMap("b", "copy"))
			_, err := p.client.CoreV1().ConfigMaps("b").Update(ctx, withState(o, "1"), updateNow)
			return err
		}},
		"hidden by a selector, without an answer": {tidings.Selection{Labels: "app=web"}, func(ctx context.Context, w *world, p *replica) error {
			o := create(w, configMap("a", "hidden"))
			w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.RefuseApplied(500))
			if _, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(o, "1"), updateNow); err == nil {
				w.Error("the write has an answer")
			}
			return nil
		}},
		// The answer has a version that no event of the resource has.
		"a deleted collection": {tidings.Selection{}, func(ctx context.Context, w *world, p *replica) error {
			err := p.client.CoreV1().Secrets("a").DeleteCollection(ctx, deleteNow, metav1.ListOptions{})
			create(w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "other"}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
				x := configMap("a", "x")
				x.Labels = map[string]string{"app": "web"}
				create(w, x)
				create(w, secret("a", "s"))
				a, b := process("a", slot.Namespace), process("b", slot.Namespace)
				var log calls
				for _, p := range []*replica{a, b} {
					i, err := tidings.For[*corev1.ConfigMap](p.factory, test.selection)
					fatal(t, err)
					secrets := controller.Reads(informer[*corev1.Secret](p.world))
					p.begins(slot.All(), control(p.world, i, options{Slots: p.s, Secondaries: []secondary{secrets}},
						func(ctx context.Context, r request) (controller.Result, error) {
							if log.add("%s", r.Key); p == b {
								return controller.Result{}, nil
							}
							return controller.Result{}, test.write(ctx, w, p)
						}))
				}
				a.takes(slotsOf("a"), map[string]string{})
				time.Sleep(100 * time.Millisecond)
				if gap := gapOfHandOver(a, b, slotsOf("a"), &log); gap > time.Second {
					t.Errorf("the hand-over took %v", gap)
				}
			})
		})
	}
}

// TestS2_TwoInformersOfAResource: a controller divided by UID also reads all objects of its type. The
// server selects slots. A write in one slot is no version that the owner of another one waits for.
func TestS2_TwoInformersOfAResource(t *testing.T) {
	for name, reads := range map[string]bool{"one": false, "two": true} {
		t.Run(name, func(t *testing.T) {
			withReplicas(t, apisim.Options{ShardedListAndWatch: true}, func(w *world, process func(string, slot.Key) *replica) {
				written := create(w, configMap("a", "written"))
				var moved *corev1.ConfigMap
				for moved = create(w, configMap("a", "moved")); slotOfUID(moved) == slotOfUID(written); {
					deleted(w, "a", "moved")
					moved = create(w, configMap("a", "moved"))
				}
				a, b := process("a", slot.UID), process("b", slot.UID)
				var log calls
				start := func(p *replica, slots slot.Set, writes bool) {
					i, err := tidings.For[*corev1.ConfigMap](p.factory, tidings.Selection{Slots: p.s.Held()})
					fatal(t, err)
					o := options{Slots: p.s}
					if reads {
						o.Secondaries = []secondary{controller.Reads(informer[*corev1.ConfigMap](p.world))}
					}
					p.begins(slots, control(p.world, i, o, func(ctx context.Context, r request) (controller.Result, error) {
						log.add("%s", r.Key)
						if !writes || r.Name() != "written" || r.Object.Data != nil {
							return controller.Result{}, nil
						}
						_, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "1"), updateNow)
						return controller.Result{}, err
					}))
				}
				both := slotOfUID(moved).Union(slotOfUID(written))
				start(a, both, true)
				start(b, slotOfUID(moved), false)
				time.Sleep(time.Second)
				a.takes(both, map[string]string{})
				time.Sleep(100 * time.Millisecond)
				if gap := gapOfHandOver(a, b, slotOfUID(moved), &log); gap > time.Second {
					t.Errorf("the hand-over took %v", gap)
				}
			})
		})
	}
}

// TestS2_SeveralNamespaces: the watch of the next owner lags for three seconds.
func TestS2_SeveralNamespaces(t *testing.T) {
	for name, selection := range map[string]tidings.Selection{
		"all": {}, "one": {Namespace: "a"}, "two": {Namespaces: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
				create(w, configMap("a", "x"))
				a, b := process("a", slot.Namespace), process("b", slot.Namespace)
				var log calls
				start := func(p *replica) {
					i, err := tidings.For[*corev1.ConfigMap](p.factory, selection)
					fatal(t, err)
					p.begins(slot.All(), control(p.world, i, options{Slots: p.s}, func(ctx context.Context, r request) (controller.Result, error) {
						log.add("%q", r.Object.Data["state"])
						if r.Object.Data != nil {
							return controller.Result{}, nil
						}
						_, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "1"), updateNow)
						return controller.Result{}, err
					}))
				}
				start(a)
				start(b)
				b.instance.SetLag(3 * time.Second)
				a.takes(slotsOf("a"), map[string]string{})
				time.Sleep(10 * time.Millisecond)
				versions := a.leaves(slotsOf("a"))
				log.take()
				b.takes(slotsOf("a"), versions)
				time.Sleep(time.Minute)
				got := log.take()
				if len(got) == 0 || got[0] != `"1"` {
					t.Errorf("calls %q", got)
				}
			})
		})
	}
}

// TestS2_ABackupBetweenRuns: the server is restored while this process does not lead the controller. It
// must not leave versions of the old history to the next leader.
func TestS2_ABackupBetweenRuns(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		p := process("a", slot.Namespace)
		writes := true
		c := newController(p.world, options{Name: "single"}, func(ctx context.Context, r request) (controller.Result, error) {
			if !writes {
				return controller.Result{}, nil
			}
			_, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "1"), updateNow)
			writes = false
			return controller.Result{}, err
		})
		stop := p.manages(c)
		backup := w.server.Snapshot()
		for range 100 {
			create(w, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "b", GenerateName: "x"}})
		}
		lead(p.s, map[string]string{})
		time.Sleep(time.Second)
		left, err := resign(p.ctx, p.s)
		fatal(t, err)
		w.server.Rewind(backup)
		time.Sleep(time.Hour)
		// The group has ended all memberships: nobody knows the versions.
		term := newTerm()
		p.s.Begin(term)
		lead(p.s, nil)
		time.Sleep(10 * time.Second)
		now, err := resign(p.ctx, p.s)
		fatal(t, err)
		_, at, err := w.server.List(w.ctx, configMaps, "")
		fatal(t, err)
		t.Logf("%v before; %v after, the server is at %s", left, now, at)
		if maps.Equal(left, now) {
			t.Errorf("the next leader is to wait for %v, and the server is at %s", now, at)
		}
		fatal(t, stop())
	})
}

// TestS2_TwoControllersOfAResource: one controller of the group has all ConfigMaps, and another one has
// those with a label. No watch of the latter shows the write of the former.
func TestS2_TwoControllersOfAResource(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		labelled := configMap("a", "labelled")
		labelled.Labels = map[string]string{"app": "web"}
		create(w, labelled)
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log, other calls
		begins := func(p *replica) {
			web, err := tidings.For[*corev1.ConfigMap](p.factory, tidings.Selection{Labels: "app=web"})
			fatal(t, err)
			p.begins(slot.All(),
				control(p.world, web, options{Name: "web", Slots: p.s}, isCalled(&log)),
				newController(p.world, options{Name: "all", Slots: p.s}, func(ctx context.Context, r request) (controller.Result, error) {
					other.add("%s", r.Key)
					if r.Name() != "x" || r.Object.Data != nil {
						return controller.Result{}, nil
					}
					_, err := p.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "1"), updateNow)
					return controller.Result{}, err
				}))
		}
		begins(a)
		begins(b)
		a.takes(slotsOf("a"), map[string]string{})
		time.Sleep(100 * time.Millisecond)
		if gap := gapOfHandOver(a, b, slotsOf("a"), &log); gap > time.Second {
			t.Errorf("the hand-over took %v", gap)
		}
	})
}

// TestS2_ASlotOfACrashWhoseControllerComesLater: a slot whose versions are not known is served, and
// drained before a controller that was made later has asked the server.
func TestS2_ASlotOfACrashWhoseControllerComesLater(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		p := process("a", slot.Namespace)
		var log calls
		p.begins(slot.All(), newController(p.world, options{Name: "first", Slots: p.s}, isCalled(&log)))
		p.takes(slotsOf("a"), nil) // after a crash
		time.Sleep(10 * time.Second)
		secrets := informer[*corev1.Secret](p.world) // as by a manager, once the server serves what the controller requires
		control(p.world, secrets, controller.Options[*corev1.Secret]{Name: "second", Slots: p.s},
			func(context.Context, controller.Request[*corev1.Secret]) (controller.Result, error) {
				return controller.Result{}, nil
			})
		p.s.Shut(slotsOf("a"))
		if c := p.s.Calls(slotOf("a")); c.Known || !c.Opened || c.Running > 0 {
			t.Errorf("the calls %+v are known, and nobody has asked for the version of the Secrets", c)
		}
	})
}

// TestS2_ANamespaceThatGoesDuringTheWait: it is removed from the informer of the next owner.
func TestS2_ANamespaceThatGoesDuringTheWait(t *testing.T) {
	withReplicas(t, apisim.Options{}, func(w *world, process func(string, slot.Key) *replica) {
		create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		a, b := process("a", slot.Namespace), process("b", slot.Namespace)
		var log calls
		start := func(p *replica) *tidings.Informer[*corev1.ConfigMap] {
			i, err := tidings.For[*corev1.ConfigMap](p.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
			fatal(t, err)
			p.begins(slot.All(), control(p.world, i, options{Slots: p.s}, isCalled(&log)))
			return i
		}
		start(a)
		i := start(b)
		time.Sleep(time.Second)
		b.instance.SetLag(time.Minute)
		y := configMap("b", "y")
		y.Data = map[string]string{"state": "1"}
		made := update(w, y)
		time.Sleep(10 * time.Millisecond)
		log.take()
		began := time.Now()
		b.takes(slotsOf("a"), map[string]string{"configmaps in b": made.ResourceVersion})
		time.Sleep(100 * time.Millisecond)
		fatal(t, i.RemoveNamespace("b"))
		for len(log.take()) == 0 && time.Since(began) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		if gap := time.Since(began); gap > time.Second {
			t.Errorf("the wait took %v", gap)
		}
	})
}

// TestC11_AnElectionOfManyNamespaces ends in order, with versions that are too long for its Lease.
func TestC11_AnElectionOfManyNamespaces(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		var names []string
		for i := range 400 {
			names = append(names, fmt.Sprintf("%s-%03d", strings.Repeat("n", 56), i))
			create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: names[i]}})
			create(w, configMap(names[i], "x"))
		}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: "test"},
		})
		fatal(t, err)
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: names})
		fatal(t, err)
		fatal(t, m.AddController(control(w, i, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data != nil {
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().ConfigMaps(r.Namespace()).Update(ctx, withState(r.Object, "1"), updateNow)
			return controller.Result{}, err
		})))
		stop := run(w, m)
		time.Sleep(time.Minute)
		fatal(t, stop())
	})
}
