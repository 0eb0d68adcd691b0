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

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/slot"
)

// TestS2_VersionsOutlastARemovedSecondary drains a slot after a secondary was removed: the versions of
// other resources are still those of the calls' writes.
func TestS2_VersionsOutlastARemovedSecondary(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		secrets, s, version := informer[*corev1.Secret](w), controller.NewSlots(controller.ByNamespace), ""
		c := newController(w, options{
			Slots: s, Secondaries: []secondary{controller.Reads[*corev1.ConfigMap](secrets)},
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
		fatal(t, s.Warm(w.ctx, slot.All()))
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		fatal(t, c.RemoveSecondary(secrets))
		versions, err := s.Drain(w.ctx, slotsOf("a"))
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
			if got, _ := s.Report(); got != want {
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

// TestS2_CallsThatOutlastTheRunLeaveNoVersions has a controller that is led singly, whose call goes on
// after the run has ended: no version that is left covers its writes.
func TestS2_CallsThatOutlastTheRunLeaveNoVersions(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("default", "x"))
		s := controller.NewSlots(controller.ByUID)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Slots: s, Guard: w.guard, Logger: discard,
		})
		fatal(t, err)
		c := newController(w, options{Name: "long"}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Object.Data["state"] == "" {
				_, err := w.client.CoreV1().ConfigMaps("default").Update(ctx, withState(x, "1"), updateNow)
				fatal(t, err)
				time.Sleep(25 * time.Second)
			}
			return controller.Result{}, nil
		})
		fatal(t, m.AddController(c))
		stop := run(w, m)
		fatal(t, s.Warm(w.ctx, slot.Of(1)))
		s.Begin(newTerm())
		fatal(t, s.Prepare(w.ctx, "long"))
		s.Lead("long", map[string]string{"configmaps": "1"})
		time.Sleep(time.Second)
		versions, err := s.Resign(w.ctx, "long")
		if !errors.Is(err, controller.ErrCallsRunning) {
			t.Fatalf("what is left: %v, %v", versions, err)
		}
		for err != nil {
			time.Sleep(time.Second)
			versions, err = s.Resign(w.ctx, "long")
		}
		if versions != nil {
			t.Errorf("what is left: %v", versions)
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
		if got := s.Controllers(); len(got) != 1 {
			t.Errorf("the controllers are %v", got)
		}
		fatal(t, stop())
	})
}
