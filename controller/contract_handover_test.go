package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// logsStates is a function that logs the state of each object.
func logsStates(log *calls) func(context.Context, request) (controller.Result, error) {
	return func(_ context.Context, r request) (controller.Result, error) {
		log.add("%s", r.Object.Data["state"])
		return controller.Result{}, nil
	}
}

// TestC03_ATermHoldsItsKeysUntilTheHandOverShows has the caches lag behind the last holder for longer than a
// start waits, in one of two namespaces.
func TestC03_ATermHoldsItsKeysUntilTheHandOverShows(t *testing.T) {
	inWorld(t, func(w *world) {
		i, first := twoNamespaces(w)
		var log calls
		c := control(w, i, options{}, logsStates(&log))
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		w.server.Inject(apisim.Match{Verb: "watch", Namespace: "a"}, apisim.Lag())
		w.server.Inject(apisim.Match{Verb: "list", Namespace: "a"}, apisim.Delay(50*time.Second))
		w.server.CutConnections()
		time.Sleep(time.Second)
		second := update(w, withState(first, "2"))
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps in a": second.ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(15 * time.Second)
		log.expect(t, "other")
		if h := c.Health(); len(h.WaitingFor) != 1 || !strings.Contains(h.WaitingFor[0], "namespace a") {
			t.Errorf("it waits for %q", h.WaitingFor)
		}
		time.Sleep(5 * time.Second)
		log.expect(t)
		time.Sleep(2 * time.Minute) // until the collection is listed
		log.expect(t, "2")
		fatal(t, stop())
	})
}

// TestS2_ASlotIsHeldUntilItsHandOverShows: the cache of one slot lags behind the last owner, and that slot
// waits. The other slot is served.
func TestS2_ASlotIsHeldUntilItsHandOverShows(t *testing.T) {
	inWorld(t, func(w *world) {
		i, first := twoNamespaces(w)
		var log calls
		s := controller.NewSlots(controller.ByNamespace)
		c := control(w, i, options{Slots: s}, logsStates(&log))
		stop := start(w, c)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		w.server.Inject(apisim.Match{Verb: "watch", Namespace: "a"}, apisim.Lag())
		w.server.Inject(apisim.Match{Verb: "list", Namespace: "a"}, apisim.Delay(50*time.Second))
		w.server.CutConnections()
		time.Sleep(time.Second)
		second := update(w, withState(first, "2"))
		given := owned(slotsOf("a", "b"))
		for n := range given {
			given[n].Versions["configmaps in a"] = second.ResourceVersion
		}
		s.Serve(given)
		time.Sleep(20 * time.Second)
		log.expect(t, "other")
		if h := c.Health(); h.SlotsExpected != slotsOf("a").String() {
			t.Errorf("expected are %q", h.SlotsExpected)
		}
		time.Sleep(2 * time.Minute) // until the collection is listed
		if got := slices.Compact(log.take()); !slices.Equal(got, []string{"2"}) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, stop())
	})
}

// TestC03_AHandOverThatCannotShow has versions that the server has lost, as it was set back since, or that no
// event will bring.
func TestC03_AHandOverThatCannotShow(t *testing.T) {
	for name, left := range map[string]func(version string) string{
		"a version that the server lost":    func(string) string { return "1000000" },
		"that of another object, unwatched": func(version string) string { return version },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.server.Inject(apisim.Match{Verb: "watch"}, apisim.DropBookmarks())
				create(w, withState(configMap("a", "x"), "1"))
				var log calls
				c := newController(w, options{}, logsStates(&log))
				fatal(t, w.factory.Start(w.ctx))
				fatal(t, w.factory.WaitForSync(w.ctx))
				other := create(w, secret("a", "s"))
				term := handingTerm{newTerm()}
				term.left, term.ok = map[string]string{"configmaps": left(other.ResourceVersion)}, true
				stop := startTerm(w, c, term)
				time.Sleep(15 * time.Second)
				log.expect(t, "1")
				fatal(t, stop())
			})
		})
	}
}

// TestC03_ACrashUnderNamespacedRights: the server's version is asked for where the controller may list.
func TestC03_ACrashUnderNamespacedRights(t *testing.T) {
	inWorld(t, func(w *world) {
		first := create(w, withState(configMap("a", "x"), "1"))
		delayWatches(w, "", 700*time.Millisecond)
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
		fatal(t, err)
		var log calls
		c := control(w, i, options{}, logsStates(&log))
		fatal(t, w.factory.Start(w.ctx))
		fatal(t, w.factory.WaitForSync(w.ctx))
		update(w, withState(first, "2")) // by the holder that has crashed
		w.server.ForgetRequests()
		stop := startTerm(w, c, handingTerm{newTerm()})
		time.Sleep(5 * time.Second)
		log.expect(t, "2")
		if slices.ContainsFunc(w.server.Requests(), func(r apisim.Request) bool { return r.Verb == "list" && r.Namespace == "" }) {
			t.Error("the server was asked in all namespaces")
		}
		fatal(t, stop())
	})
}

// TestC14_AnOptionalTypeThatVanishes holds up no call: there is nothing to be stale.
func TestC14_AnOptionalTypeThatVanishes(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, configMap("a", "x"))
		var log calls
		c := newController(w, options{MaxStaleness: 3 * time.Minute, Secondaries: []secondary{
			controller.Owns(informer[*corev1.Secret](w)).Optional(),
		}}, isCalled(&log))
		stop := start(w, c)
		time.Sleep(time.Minute)
		w.server.RemoveResource(corev1.SchemeGroupVersion.WithResource("secrets"))
		time.Sleep(time.Hour)
		synctest.Wait()
		log.take()
		update(w, withState(x, "changed"))
		time.Sleep(time.Second)
		log.expect(t, "a/x")
		fatal(t, stop())
	})
}

// TestC03_WhatCameAndWent: the cache has what the server has, and its watch, which lags, has yet to bring the
// states before that of an object that the last holder has made and ended.
func TestC03_WhatCameAndWent(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "other"))
		w.server.Inject(apisim.Match{Verb: "watch", Resource: "configmaps"}, apisim.Stall(apisim.EachFrame, 25*time.Second))
		var log calls
		c := newController(w, options{}, func(_ context.Context, r request) (controller.Result, error) {
			if r.Gone {
				log.add("%s is gone", r.Key)
			} else {
				log.add("%s %s", r.Key, r.Object.Data["state"])
			}
			return controller.Result{}, nil
		})
		fatal(t, w.factory.Start(w.ctx))
		time.Sleep(40 * time.Second)
		synctest.Wait()
		x := create(w, withState(configMap("a", "x"), "1"))
		made, err := w.server.Update(context.Background(), withState(x, "2"))
		fatal(t, err)
		_, err = w.server.Delete(context.Background(), corev1.SchemeGroupVersion.WithResource("configmaps"), "a", "x")
		fatal(t, err)
		term := handingTerm{newTerm()}
		term.left, term.ok = map[string]string{"configmaps": made.(*corev1.ConfigMap).ResourceVersion}, true
		stop := startTerm(w, c, term)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		log.expect(t, "a/other ")
		fatal(t, stop())
	})
}
