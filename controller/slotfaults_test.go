package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS2_VersionsOutlastARemovedSecondary drains a slot after a secondary was removed: the versions of
// other resources are still those of the calls' writes.
func TestS2_VersionsOutlastARemovedSecondary(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		secrets, s, version := informer[*corev1.Secret](w), controller.NewSlots(controller.ByNamespace), ""
		c := newController(w, options{
			Slots: s, Secondaries: []secondary{controller.Reads(secrets)},
		}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data["state"] != "" {
				return controller.Result{}, nil
			}
			got, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(x, "1"), updateNow)
			fatal(t, err)
			version = got.ResourceVersion
			return controller.Result{}, nil
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		fatal(t, c.RemoveSecondary(secrets))
		versions, err := drain(w.ctx, s, slotsOf("a"))
		fatal(t, err)
		if versions["configmaps"] != version || version == "" {
			t.Errorf("the versions are %v, want %q", versions, version)
		}
		fatal(t, stop())
	})
}

// TestS5_ASlotWhoseChangesDoNotComeIsNotInOrder has a server that refuses the lists and watches of an
// informer.
func TestS5_ASlotWhoseChangesDoNotComeIsNotInOrder(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, isCalled(&log), func(
		w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		s.Serve(owned(slotsOf("a")))
		inOrder := func(want slot.Set) {
			t.Helper()
			synctest.Wait()
			if got := s.Work().Ready; got != want {
				t.Errorf("in order are %v, want %v", got, want)
			}
		}
		inOrder(slotsOf("a"))
		var faults []*apisim.Injection
		for _, verb := range []string{"list", "watch"} {
			faults = append(faults, w.server.Inject(apisim.Match{Resource: "configmaps", Verb: verb},
				apisim.Refuse(http.StatusForbidden, 0)))
		}
		w.server.CutConnections()
		time.Sleep(50 * time.Second)
		inOrder(slotsOf("a"))
		time.Sleep(20 * time.Second)
		inOrder(slot.Set{})
		for _, f := range faults {
			f.Lift()
		}
		time.Sleep(5 * time.Minute)
		inOrder(slotsOf("a"))
	})
}

// TestC03_AnAbortedTakeOverLeavesNoVersions has a holder that follows a crash, and ends before it has
// asked the server: neither it nor the next holder knows the writes of the crashed one.
func TestC03_AnAbortedTakeOverLeavesNoVersions(t *testing.T) {
	for known, want := range map[bool]map[string]string{false: nil, true: {"configmaps": "9999"}} {
		inWorld(t, func(w *world) {
			var log calls
			create(w, configMap("a", "x"))
			c := newController(w, options{}, isCalled(&log))
			first := newTerm()
			stop := startTerm(w, c, handingTerm{first})
			time.Sleep(2 * time.Second)
			fatal(t, stop())
			if first.reached["configmaps"] == "" {
				t.Fatalf("the first holder leaves %v", first.reached)
			}
			w.server.Inject(apisim.Match{Resource: "configmaps", Verb: "list"}, apisim.Delay(time.Second))
			term := newTerm()
			if term.ok = known; known {
				term.left = want
			}
			stop = startTerm(w, c, handingTerm{term})
			time.Sleep(100 * time.Millisecond)
			fatal(t, stop())
			if !maps.Equal(term.reached, want) || (term.reached == nil) != (want == nil) {
				t.Errorf("the second holder leaves %v, want %v", term.reached, want)
			}
		})
	}
}

// TestS2_CallsThatOutlastTheHandOver has a controller that is led as a whole, whose call goes on after the
// time for a hand-over: the version that is left later covers its writes.
func TestS2_CallsThatOutlastTheHandOver(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("default", "x"))
		s := controller.NewSlots(controller.ByUID)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Slots: s, Guard: w.guard, Logger: discard,
		})
		fatal(t, err)
		var made *corev1.ConfigMap
		c := newController(w, options{Name: "long"}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data["state"] == "" {
				time.Sleep(25 * time.Second)
				var err error
				made, err = w.client.CoreV1().ConfigMaps("default").Update(ctx, withState(x, "1"), updateNow)
				fatal(t, err)
			}
			return controller.Result{}, nil
		})
		fatal(t, m.AddController(c))
		stop := run(w, m)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, map[string]string{"configmaps": "1"})
		time.Sleep(time.Second)
		bounded, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		versions, err := resign(bounded, s)
		if !errors.Is(err, controller.ErrCallsRunning) {
			t.Fatalf("what is left: %v, %v", versions, err)
		}
		versions, err = resign(w.ctx, s)
		if fatal(t, err); versions["configmaps"] != made.ResourceVersion {
			t.Errorf("what is left: %v, want the version %s", versions, made.ResourceVersion)
		}
		fatal(t, stop())
	})
}

// TestC11_AManagerOfAGroupCountsWhatIsLedSingly has more controllers than a group can lead, most of
// which have slots.
func TestC11_AManagerOfAGroupCountsWhatIsLedSingly(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		var log calls
		for i := range slot.MaxControllers {
			fatal(t, m.AddController(newController(w, options{Name: fmt.Sprint("s", i), Slots: s}, isCalled(&log))))
		}
		fatal(t, m.AddController(newController(w, options{Name: "single"}, isCalled(&log))))
		stop := run(w, m)
		synctest.Wait()
		if got := led(s); len(got) != 1 {
			t.Errorf("the controllers are %v", got)
		}
		fatal(t, stop())
	})
}

// TestC14_AnOptionalSecondaryOfSlots cannot be listed, and keeps no slot from being served.
func TestC14_AnOptionalSecondaryOfSlots(t *testing.T) {
	inWorld(t, func(w *world) {
		var log calls
		s := controller.NewSlots(controller.ByNamespace)
		w.server.Inject(apisim.Match{Resource: "secrets"}, apisim.Refuse(http.StatusForbidden, 0))
		create(w, configMap("a", "x"))
		secrets, err := tidings.For[*corev1.Secret](w.factory, tidings.Selection{Slots: s.Held()})
		fatal(t, err)
		c := newController(w, options{Slots: s, Secondaries: []secondary{
			controller.Reads(secrets).Optional(),
		}}, isCalled(&log))
		stop := start(w, c)
		synctest.Wait()
		s.Begin(newTerm())
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		fill(ctx, t, s, slot.All())
		s.Serve(owned(slot.All()))
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}

// TestS2_VersionsThatCouldNotBeReadAreNotKnown refuses the lists that show the server's versions after a
// crash.
func TestS2_VersionsThatCouldNotBeReadAreNotKnown(t *testing.T) {
	var log calls
	inSlots(t, controller.ByNamespace, options{}, isCalled(&log), func(
		w *world, s *controller.Slots, _ *controller.Controller[*corev1.ConfigMap], _ *testTerm,
	) {
		create(w, configMap("a", "x"))
		synctest.Wait() // The cache has it: its event makes no call of its own.
		refused := w.server.Inject(apisim.Match{Resource: "configmaps", Verb: "list"}, apisim.Refuse(503, 0))
		s.Serve([]slot.Owned{{Number: slotOf("a"), Epoch: 2}})
		time.Sleep(5 * time.Second)
		log.expect(t, "a/x")
		s.Shut(slotsOf("a"))
		time.Sleep(time.Minute)
		if c := s.Calls(slotOf("a")); c.Known || c.Versions != nil || c.Running > 0 || !c.Opened {
			t.Errorf("the calls are %+v", c)
		}
		s.Drop(slotsOf("a"))
		refused.Lift()
		s.Serve([]slot.Owned{{Number: slotOf("a"), Epoch: 2}})
		time.Sleep(5 * time.Second)
		if versions, err := drain(w.ctx, s, slotsOf("a")); err != nil || versions["configmaps"] == "" {
			t.Errorf("the versions are %v, %v once they could be read", versions, err)
		}
	})
}

// TestS2_AWriteThatASelectorHides leaves no version, as the next owner does not see it either.
func TestS2_AWriteThatASelectorHides(t *testing.T) {
	inWorld(t, func(w *world) {
		shown := configMap("a", "shown")
		shown.Labels = map[string]string{"app": "web"}
		create(w, shown)
		hidden := create(w, configMap("a", "hidden"))
		selected, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Labels: "app=web"})
		fatal(t, err)
		s, writes, version := controller.NewSlots(controller.ByNamespace), false, ""
		c := control(w, selected, options{Slots: s}, func(ctx context.Context, r request) (controller.Result, error) {
			client := w.client.CoreV1().ConfigMaps("a")
			if writes && r.Object.Data == nil {
				got, err := client.Update(ctx, withState(r.Object, "1"), updateNow)
				fatal(t, err)
				version = got.ResourceVersion
			}
			_, err := client.Update(ctx, withState(hidden, "1"), updateNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		for _, writes = range []bool{false, true} {
			s.Serve(owned(slotsOf("a")))
			synctest.Wait()
			versions, err := drain(w.ctx, s, slotsOf("a"))
			fatal(t, err)
			if versions[`configmaps with "app=web" and ""`] != version {
				t.Errorf("the versions are %v, want %q", versions, version)
			}
			s.Drop(slotsOf("a"))
			if hidden, err = w.client.CoreV1().ConfigMaps("a").Get(w.ctx, "hidden", metav1.GetOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		fatal(t, stop())
	})
}

// TestS5_AControllerThatIsLeftOut by the options of its manager keeps no slot from being served.
func TestS5_AControllerThatIsLeftOut(t *testing.T) {
	inWorld(t, func(w *world) {
		var log calls
		create(w, configMap("a", "x"))
		s := controller.NewSlots(controller.ByNamespace)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Controllers: controller.Names{"*", "-second"}, Slots: s,
		})
		fatal(t, err)
		first := newController(w, options{Name: "first", Slots: s}, isCalled(&log))
		second := newController(w, options{Name: "second", Slots: s}, isCalled(&log))
		fatal(t, m.AddController(first))
		fatal(t, m.AddController(second))
		ctx, stop := context.WithCancel(w.ctx)
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		synctest.Wait()
		s.Begin(newTerm())
		warming, cancel := context.WithTimeout(w.ctx, 5*time.Minute)
		defer cancel()
		if err := s.Warm(warming, slot.All()); err != nil {
			t.Errorf("warm: %v", err)
		}
		s.Serve(owned(slot.All()))
		log.expect(t, "a/x")
		if inOrder := s.Work().Ready; inOrder != slot.All() {
			t.Errorf("in order: %v", inOrder)
		}
		stop()
		fatal(t, <-ended)
	})
}
