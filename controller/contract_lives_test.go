package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// TestC06_EachLifeEnds in a call with its last state, before the first call of the next life.
func TestC06_EachLifeEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		x := create(w, withState(configMap("a", "x"), "1"))
		var log calls
		var during func()
		failing := 0
		c := newController(w, options{FirstDelay: time.Second}, func(_ context.Context, r request) (controller.Result, error) {
			if r.Gone != (r.Object == nil) || r.Gone != (r.Last != nil) {
				t.Errorf("Gone is %v, Object %v and Last %v", r.Gone, r.Object, r.Last)
			}
			switch {
			case r.Gone && failing > 0:
				failing--
				log.add("fails at the end of %s", known(r).Data["state"])
				return controller.Result{}, errLater
			case r.Gone:
				log.add("end of %s", known(r).Data["state"])
			default:
				log.add("%s", known(r).Data["state"])
			}
			if during != nil {
				during()
				during = nil
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		log.expect(t, "1")
		// The object is replaced, twice, while a call of it runs.
		during = func() {
			for _, state := range []string{"3", "4"} {
				fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
				x = create(w, withState(configMap("a", "x"), state))
			}
			time.Sleep(time.Second) // the cache has received both
		}
		update(w, withState(x, "2"))
		time.Sleep(2 * time.Second)
		log.expect(t, "2", "end of 2", "4")
		// The call of the end fails, and the next life has to wait.
		failing = 2
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
		log.expect(t, "fails at the end of 4")
		create(w, withState(configMap("a", "x"), "5"))
		time.Sleep(10 * time.Second)
		log.expect(t, "fails at the end of 4", "end of 4", "5")
		// An object that came and went unseen had no call, and has no call for its end.
		create(w, configMap("a", "y"))
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "y", deleteNow))
		synctest.Wait()
		if got := len(log.take()); got != 0 && got != 2 {
			t.Errorf("%d calls of an object that came and went", got)
		}
		fatal(t, stop())
	})
}

// TestC06_AnEndThatTakesSeveralCalls: the next life begins after all of them.
func TestC06_AnEndThatTakesSeveralCalls(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "1"))
		var log calls
		steps := 0
		c := newController(w, options{}, func(_ context.Context, r request) (controller.Result, error) {
			if !r.Gone {
				log.add("%s", known(r).Data["state"])
				return controller.Result{}, nil
			}
			steps++
			log.add("step %d of the end of %s", steps, known(r).Data["state"])
			if steps < 3 {
				return controller.Result{RequeueAfter: time.Minute}, nil
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		synctest.Wait()
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
		synctest.Wait()
		second := create(w, withState(configMap("a", "x"), "2"))
		fatal(t, func() error {
			ctx, cancel := context.WithTimeout(w.ctx, time.Hour)
			defer cancel()
			return c.WaitUntilReconciled(ctx, "a/x", second.ResourceVersion)
		}())
		got := log.take()
		if want := "step 3 of the end of 1"; len(got) != 5 || got[3] != want || got[4] != "2" {
			t.Errorf("calls: %q", got)
		}
		fatal(t, stop())
	})
}

// TestC06_OutcomesOfAnEnd has a row for each outcome of the call for the end of an object: what becomes of the
// next object of its name, and of what is kept without one.
func TestC06_OutcomesOfAnEnd(t *testing.T) {
	for name, o := range map[string]struct {
		result controller.Result
		err    error
		ends   int // the least number of calls for the end in a minute; 1 is its only one
	}{
		"success":    {controller.Result{}, nil, 1},
		"a requeue":  {controller.Result{RequeueAfter: 25 * time.Second}, nil, 3},
		"an error":   {controller.Result{}, errLater, 3},
		"terminal":   {controller.Result{}, controller.Terminal(errLater), 1},
		"RetryAfter": {controller.Result{}, controller.RetryAfter(errLater, 25*time.Second), 3},
		"a panic":    {ends: 3},
	} {
		for _, again := range []time.Duration{0, 30 * time.Second, -1} {
			t.Run(fmt.Sprintf("%s, another object after %v", name, again), func(t *testing.T) {
				inWorld(t, func(w *world) {
					create(w, withState(configMap("a", "x"), "1"))
					ends, next := 0, 0
					over := o.ends == 1
					c := newController(w, options{FirstDelay: 15 * time.Second}, func(_ context.Context, r request) (controller.Result, error) {
						if r.Gone {
							if ends++; name == "a panic" {
								panic("at the end")
							}
							return o.result, o.err
						}
						if r.Object.Data["state"] == "2" {
							next++
						}
						return controller.Result{}, nil
					})
					stop := start(w, c)
					time.Sleep(time.Second)
					fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, "x", deleteNow))
					if again >= 0 {
						time.Sleep(again)
						create(w, withState(configMap("a", "x"), "2"))
					}
					time.Sleep(time.Minute - max(again, 0))
					synctest.Wait()
					if ends < o.ends || over && ends > 1 || next > 0 != (over && again >= 0) {
						t.Errorf("%d calls for the end, want %d, and %d for the next object", ends, o.ends, next)
					}
					before := ends
					c.Enqueue("a/x")
					time.Sleep(time.Minute)
					synctest.Wait()
					if kept := ends > before; kept == over {
						t.Errorf("the last state is kept: %v", kept)
					}
					fatal(t, stop())
				})
			})
		}
	}
}

// TestC06_WhatLeavesASelectionIsNotGone: the server is asked, as it sends the same event for both.
func TestC06_WhatLeavesASelectionIsNotGone(t *testing.T) {
	inWorld(t, func(w *world) {
		labelled := func(name string) *corev1.ConfigMap {
			cm := configMap("a", name)
			cm.Labels = map[string]string{"app": "web"}
			return create(w, cm)
		}
		leaves, goes, forbidden := labelled("leaves"), labelled("goes"), labelled("forbidden")
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Labels: "app=web"})
		fatal(t, err)
		var log calls
		c := control(w, i, options{}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/forbidden", "a/goes", "a/leaves")
		leaves.Labels = nil
		w.server.Inject(apisim.Match{Verb: "get", Resource: "configmaps", Times: 1}, page) // it is asked again
		leaves = update(w, leaves)
		time.Sleep(10 * time.Second)
		log.expect(t, "a/leaves left")
		leaves.Labels = map[string]string{"app": "web"}
		update(w, leaves)
		log.expect(t, "a/leaves")
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, goes.Name, deleteNow))
		log.expect(t, "a/goes gone")
		refusal := w.server.Inject(apisim.Match{Verb: "get"}, apisim.Refuse(403, 0))
		fatal(t, w.client.CoreV1().ConfigMaps("a").Delete(w.ctx, forbidden.Name, deleteNow))
		log.expect(t)
		if h := c.Health(); !strings.Contains(h.LastError, "grant get on configmaps") {
			t.Errorf("the error is %q", h.LastError)
		}
		refusal.Lift()
		time.Sleep(time.Minute)
		log.expect(t, "a/forbidden gone")
		fatal(t, stop())
	})
}

// TestC06_ANamespaceThatIsRemoved from the informer: its objects are not gone.
func TestC06_ANamespaceThatIsRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		create(w, configMap("b", "y"))
		i, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Namespaces: []string{"a", "b"}})
		fatal(t, err)
		var log calls
		c := control(w, i, options{}, isCalled(&log))
		stop := start(w, c)
		log.expect(t, "a/x", "b/y")
		fatal(t, i.RemoveNamespace("b"))
		log.expect(t, "b/y left")
		fatal(t, stop())
	})
}
