package controller_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/controller"
)

// logged returns a controller of ConfigMaps whose calls write the states that they read into a
// log.
func logged(w *world, log *calls, o controller.Options[*corev1.ConfigMap]) *controller.Controller[*corev1.ConfigMap] {
	w.Helper()
	o.Name = "logged"
	c, err := controller.New(informer[*corev1.ConfigMap](w), o,
		func(_ context.Context, r controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			state := known(r).Data["state"]
			if r.Gone {
				state = "gone after " + state
			}
			log.add("%s %s", r.Key, state)
			return controller.Result{}, nil
		})
	fatal(w.T, err)
	return c
}

func withState(cm *corev1.ConfigMap, state string) *corev1.ConfigMap {
	cm = cm.DeepCopy()
	cm.Data = map[string]string{"state": state}
	return cm
}

func TestC02_EachChangeLeadsToACall(t *testing.T) {
	inWorld(t, func(w *world) {
		var log calls
		first := create(w, withState(configMap("a", "x"), "1"))
		c := logged(w, &log, controller.Options[*corev1.ConfigMap]{})
		stop := start(w, c)
		synctest.Wait()
		second := withState(first, "2")
		_, err := w.server.Update(w.ctx, second)
		fatal(t, err)
		synctest.Wait()
		create(w, withState(configMap("b", "y"), "1"))
		synctest.Wait()
		_, err = w.client.CoreV1().ConfigMaps("b").Get(w.ctx, "y", getNow)
		fatal(t, err)
		fatal(t, w.client.CoreV1().ConfigMaps("b").Delete(w.ctx, "y", deleteNow))
		synctest.Wait()
		want := []string{"a/x 1", "a/x 2", "b/y 1", "b/y gone after 1"}
		if got := log.take(); !slices.Equal(got, want) {
			t.Errorf("calls: %q\nwant:  %q", got, want)
		}
		fatal(t, stop())
		if h := c.Health(); h.Calls != 4 || h.State != controller.StateStopped {
			t.Errorf("health: %+v", h)
		}
	})
}

// TestC03_ACallReadsWhatItWrote: the watch is half a second behind, and each call increases the
// number that it reads. A call on a stale cache would be refused with a conflict.
func TestC03_ACallReadsWhatItWrote(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), ""))
		delayWatches(w, "", 500*time.Millisecond)
		var log calls
		configMaps := informer[*corev1.ConfigMap](w)
		c, err := controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
			Name: "counter", Guard: w.guard,
		}, func(ctx context.Context, r controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			if state := r.Object.Data["state"]; len(state) < 10 {
				log.add("%s", state)
				next := withState(r.Object, state+"+")
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, next, updateNow)
				return controller.Result{RequeueAfter: time.Millisecond}, err
			}
			return controller.Result{}, nil
		})
		fatal(t, err)
		stop := start(w, c)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(log.take()); got != 10 {
			t.Errorf("%d calls wrote, want 10", got)
		}
		if h := c.Health(); h.Errors != 0 || h.ParkedKeys != 0 {
			t.Errorf("health: %+v", h)
		}
		fatal(t, stop())
	})
}

func TestC13_APanicIsTheErrorOfItsCall(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		n := 0
		c, err := controller.New(informer[*corev1.ConfigMap](w), controller.Options[*corev1.ConfigMap]{
			Name: "panics", Logger: discard,
		}, func(context.Context, controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			n++
			if n < 3 {
				panic("oh")
			}
			return controller.Result{}, nil
		})
		fatal(t, err)
		stop := start(w, c)
		time.Sleep(time.Second)
		synctest.Wait()
		if h := c.Health(); n != 3 || h.Panics != 2 || h.LastError != "the call panicked: oh" {
			t.Errorf("%d calls, health %+v", n, h)
		}
		fatal(t, stop())
	})
}

func TestC09_RunNamesTheCallsThatDoNotReturn(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		release := make(chan struct{})
		var cause error
		c, err := controller.New(informer[*corev1.ConfigMap](w), controller.Options[*corev1.ConfigMap]{
			Name: "stuck", StopGrace: 2 * time.Second,
		}, func(ctx context.Context, _ controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			<-release
			return controller.Result{}, nil
		})
		fatal(t, err)
		stop := start(w, c)
		synctest.Wait()
		began := time.Now()
		err = stop()
		synctest.Wait()
		if took := time.Since(began); took != 4*time.Second || !errors.Is(err, controller.ErrCallsRunning) {
			t.Errorf("after %v: %v", took, err)
		}
		if want := `controller "stuck": calls are still running after 2s: a/x for 4s`; err == nil || err.Error() != want {
			t.Errorf("the error is %q, want %q", err, want)
		}
		if !errors.Is(cause, controller.ErrStopping) {
			t.Errorf("the call's context ended with %v", cause)
		}
		close(release)
	})
}
