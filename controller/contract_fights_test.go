package controller_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/tidings-go/tidings/controller"
)

// logging returns options of a controller that logs into a buffer.
func logging(name string) (options, *bytes.Buffer) {
	var log bytes.Buffer
	return options{Name: name, Logger: slog.New(slog.NewTextHandler(&log, nil))}, &log
}

// apply writes a value of a ConfigMap as a field manager.
func apply(ctx context.Context, w *world, name, manager, key, value string) error {
	_, err := w.client.CoreV1().ConfigMaps("a").Apply(ctx,
		applycorev1.ConfigMap(name, "a").WithData(map[string]string{key: value}),
		metav1.ApplyOptions{FieldManager: manager, Force: true})
	return err
}

// insists returns a reconcile function that takes a second, and applies the value if the object
// has another one.
func insists(w *world, manager, value string) controller.Func[*corev1.ConfigMap] {
	return func(ctx context.Context, r request) (controller.Result, error) {
		time.Sleep(time.Second)
		if r.Gone || r.Object.Data["value"] == value {
			return controller.Result{}, nil
		}
		return controller.Result{}, apply(ctx, w, "x", manager, "value", value)
	}
}

// TestC12_AFight: two controllers write one field in turn. Both name the other one, until it has
// stopped for ten minutes.
func TestC12_AFight(t *testing.T) {
	inWorld(t, func(w *world) {
		fatal(t, apply(w.ctx, w, "x", "user", "value", "zero"))
		o, log := logging("one")
		one := newController(w, o, insists(w, "first", "one"))
		two := newController(w, options{Name: "two"}, insists(w, "second", "two"))
		began := time.Now()
		stopOne, stopTwo := start(w, one), start(w, two)
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, c := range []struct {
			of             *controller.Controller[*corev1.ConfigMap]
			manager, other string
		}{{one, "first", "second"}, {two, "second", "first"}} {
			h := c.of.Health()
			if len(h.Fights) != 1 || len(h.Looping) > 0 {
				t.Fatalf("%s: fights %+v, loops %+v", h.Name, h.Fights, h.Looping)
			}
			f := h.Fights[0]
			if f.Key != "a/x" || f.Object != "a/x" || f.Informer != "configmaps.v1" ||
				!slices.Equal(f.Fields, []string{"data.value"}) || f.Manager != c.manager ||
				f.Other != c.other || f.Times < 10 || f.Since.Before(began) ||
				time.Since(f.Last) > 5*time.Second {
				t.Errorf("%s: %+v", h.Name, f)
			}
		}
		fatal(t, stopTwo())
		time.Sleep(9 * time.Minute)
		if n := len(one.Health().Fights); n != 1 {
			t.Errorf("%d fights after nine minutes of peace, want the one that is not over", n)
		}
		time.Sleep(2 * time.Minute)
		if f := one.Health().Fights; len(f) > 0 {
			t.Errorf("after eleven minutes of peace: %+v", f)
		}
		fatal(t, stopOne())
		const begin = `level=WARN msg="others and calls change the same fields in turn" ` +
			`controller=one key=a/x informer=configmaps.v1 object=a/x fields=[data.value] ` +
			`manager=first times=`
		const end = `msg="others and calls do not change the same fields in turn any more"`
		if strings.Count(log.String(), begin) != 1 || strings.Count(log.String(), end) != 1 {
			t.Errorf("the log is\n%swant one line %s", log, begin)
		}
	})
}

// TestC12_AFightOverAnObject: calls create an object, and others delete it.
func TestC12_AFightOverAnObject(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		secrets := informer[*corev1.Secret](w)
		c := newController(w, options{Secondaries: []secondary{
			controller.Maps(secrets, func(*corev1.Secret) iter.Seq[string] {
				return slices.Values([]string{"a/x"})
			}),
		}}, func(ctx context.Context, r request) (controller.Result, error) {
			if _, err := controller.Read(ctx, secrets).Get("a/s"); err == nil {
				return controller.Result{}, nil
			}
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "s"), createNow)
			return controller.Result{}, err
		})
		stop := start(w, c)
		for range 20 {
			time.Sleep(time.Minute)
			_, err := w.server.Delete(w.ctx, corev1.SchemeGroupVersion.WithResource("secrets"), "a", "s")
			fatal(t, err)
		}
		time.Sleep(time.Minute)
		f := c.Health().Fights
		if len(f) != 1 || f[0].Object != "a/s" || f[0].Informer != "secrets.v1" ||
			!slices.Equal(f[0].Fields, []string{"(the object)"}) {
			t.Errorf("fights: %+v", f)
		}
		fatal(t, stop())
	})
}

// TestC12_ALoop: each call writes a time stamp, and so leads to the next call.
func TestC12_ALoop(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		o, log := logging("stamp")
		var writes atomic.Bool
		writes.Store(true)
		c := newController(w, o, func(ctx context.Context, r request) (controller.Result, error) {
			time.Sleep(time.Second)
			if !writes.Load() {
				return controller.Result{}, nil
			}
			return controller.Result{}, apply(ctx, w, "x", "stamp", "at", time.Now().String())
		})
		stop := start(w, c)
		time.Sleep(8 * time.Second)
		if h := c.Health(); len(h.Looping) > 0 {
			t.Errorf("after eight calls: %+v", h.Looping)
		}
		time.Sleep(time.Minute)
		h := c.Health()
		if len(h.Fights) > 0 || len(h.Looping) != 1 {
			t.Fatalf("fights %+v, loops %+v", h.Fights, h.Looping)
		}
		if l := h.Looping[0]; l.Key != "a/x" || !slices.Equal(l.Fields, []string{"data.at"}) ||
			l.Manager != "stamp" || l.Other != "" || l.Times < 30 || h.Loops < 30 {
			t.Errorf("%+v, %d calls of own writes", l, h.Loops)
		}
		writes.Store(false)
		time.Sleep(11 * time.Minute)
		if l := c.Health().Looping; len(l) > 0 {
			t.Errorf("after eleven minutes of rest: %+v", l)
		}
		fatal(t, stop())
		const begin = `level=WARN msg="calls write the same fields again because of their own writes" ` +
			`controller=stamp key=a/x informer=configmaps.v1 object=a/x fields=[data.at] manager=stamp times=`
		if strings.Count(log.String(), begin) != 1 || strings.Count(log.String(), "any more") != 1 {
			t.Errorf("the log is\n%swant one line %s", log, begin)
		}
	})
}

// TestC12_NoFalseAlarm has objects that are written often, and come to rest.
func TestC12_NoFalseAlarm(t *testing.T) {
	const writes = 100
	mirror := func(w *world, ctx context.Context, r request) (controller.Result, error) {
		if r.Gone || r.Object.Data["seen"] == r.Object.Data["wanted"] {
			return controller.Result{}, nil
		}
		return controller.Result{}, apply(ctx, w, "x", "mirror", "seen", r.Object.Data["wanted"])
	}
	for name, test := range map[string]struct {
		reconcile func(w *world, ctx context.Context, r request) (controller.Result, error)
		others    func(w *world, i int)
	}{
		"a status that follows a specification": {mirror, func(w *world, i int) {
			fatal(w.T, apply(w.ctx, w, "x", "user", "wanted", fmt.Sprint(i)))
		}},
		"conflicts": {func(w *world, ctx context.Context, r request) (controller.Result, error) {
			time.Sleep(400 * time.Millisecond) // others write meanwhile
			if r.Object.Data["seen"] == r.Object.Data["wanted"] {
				return controller.Result{}, nil
			}
			next := r.Object.DeepCopy()
			next.Data["seen"] = next.Data["wanted"]
			_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, next, updateNow)
			return controller.Result{}, err
		}, func(w *world, i int) {
			fatal(w.T, apply(w.ctx, w, "x", "user", "wanted", fmt.Sprint(i)))
		}},
		"steps that come to rest": {func(w *world, ctx context.Context, r request) (controller.Result, error) {
			time.Sleep(10 * time.Millisecond)
			var wanted, seen int
			fmt.Sscan(r.Object.Data["wanted"], &wanted) //nolint:errcheck // 0 without one
			fmt.Sscan(r.Object.Data["seen"], &seen)     //nolint:errcheck // 0 without one
			if seen >= wanted {
				return controller.Result{}, nil
			}
			return controller.Result{}, apply(ctx, w, "x", "steps", "seen", fmt.Sprint(seen+1))
		}, func(w *world, i int) {
			fatal(w.T, apply(w.ctx, w, "x", "user", "wanted", fmt.Sprint(5*i)))
		}},
		"others that write other fields": {mirror, func(w *world, i int) {
			fatal(w.T, apply(w.ctx, w, "x", "user", "wanted", fmt.Sprint(i/2)))
			fatal(w.T, apply(w.ctx, w, "x", "kubelet", "heartbeat", fmt.Sprint(i)))
		}},
	} {
		inWorld(t, func(w *world) {
			fatal(t, apply(w.ctx, w, "x", "user", "wanted", "0"))
			o, log := logging("test")
			c := newController(w, o, func(ctx context.Context, r request) (controller.Result, error) {
				return test.reconcile(w, ctx, r)
			})
			stop := start(w, c)
			for i := range writes {
				time.Sleep(time.Second)
				test.others(w, i)
			}
			time.Sleep(time.Minute)
			h := c.Health()
			if len(h.Fights)+len(h.Looping) > 0 || strings.Contains(log.String(), "same fields") {
				t.Errorf("%s: fights %+v, loops %+v, log\n%s", name, h.Fights, h.Looping, log)
			}
			if h.Calls < writes/2 {
				t.Errorf("%s: %d calls", name, h.Calls)
			}
			fatal(t, stop())
		})
	}
}

// TestC12_LagOfWrites: events are half a second late.
func TestC12_LagOfWrites(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("a", "x"))
		delayWatches(w, "", 500*time.Millisecond)
		for i, work := range []time.Duration{0, 2 * time.Second} {
			name := fmt.Sprint("state-", i)
			c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
				if r.Object.Data[name] != "" {
					return controller.Result{}, nil
				}
				next := withState(r.Object, "")
				next.Data[name] = "written"
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, next, updateNow)
				time.Sleep(work) // the event comes meanwhile
				return controller.Result{}, err
			})
			stop := start(w, c)
			synctest.Wait()
			if n := c.Health().AwaitedWrites; n != 1 && work == 0 {
				t.Errorf("%d writes are awaited, want 1", n)
			}
			time.Sleep(10 * time.Second)
			h := c.Health()
			cached := h.Informers[0]
			if cached.Name != "configmaps.v1" || cached.Lag.Count() != 1 || cached.Lag.Sum != 500*time.Millisecond {
				t.Errorf("the lag of the cache: %d, %v", cached.Lag.Count(), cached.Lag.Sum)
			}
			want := max(work, 500*time.Millisecond)
			if h.Lag.Count() != 1 || h.Lag.Sum != want || h.AwaitedWrites != 0 {
				t.Errorf("the lag of calls: %d, %v, want %v; %d writes are awaited", h.Lag.Count(), h.Lag.Sum,
					want, h.AwaitedWrites)
			}
			if last := c.Calls("a/x"); len(last) != 2 || last[0].Lag.Duration != want || last[1].Lag.Duration != 0 {
				t.Errorf("calls: %+v", last)
			}
			fatal(t, stop())
		}
	})
}
