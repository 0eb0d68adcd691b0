package controller_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// TestC05_ATerminalErrorWaitsForAChange: an own write is a change, as the call has not read the
// state that it has written.
func TestC05_ATerminalErrorWaitsForAChange(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "1"))
		delayWatches(w, "configmaps", time.Millisecond) // the answer to a write comes before its event
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s %v", r.Object.Data["state"], r.Reasons)
			if r.Object.Data["state"] == "1" {
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "bad"), updateNow)
				fatal(t, err)
			}
			return controller.Result{}, controller.Terminal(errLater)
		})
		stop := start(w, c)
		time.Sleep(time.Hour)
		log.expect(t, "1 [Initial configmaps.v1 a/x]", "bad [Updated configmaps.v1 a/x by this controller]")
		current, err := apisim.Get[*corev1.ConfigMap](w.ctx, w.server, "a", "x")
		fatal(t, err)
		update(w, withState(current, "better"))
		time.Sleep(10 * time.Millisecond)
		log.expect(t, "better [Updated configmaps.v1 a/x]")
		fatal(t, stop())
	})
}

// TestC13_AStackIsLoggedOnce for a key, until a call of the key has succeeded.
func TestC13_AStackIsLoggedOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"x", "y"} {
			create(w, configMap("a", name))
		}
		var logged bytes.Buffer
		n := map[string]int{}
		o := options{Logger: slog.New(slog.NewTextHandler(&logged, nil)), Resync: time.Hour}
		c := newController(w, o, func(_ context.Context, r request) (controller.Result, error) {
			n[r.Name()]++
			switch {
			case r.Name() == "x" && n["x"] < 5, r.Name() == "x" && n["x"] > 7:
				panic("oh")
			case r.Name() == "x" && n["x"] < 7:
				panic(fmt.Sprint("another stack, ", n["x"]))
			case r.Name() == "y" && n["y"] == 1:
				panic("y")
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(90 * time.Minute)
		synctest.Wait()
		text := logged.String()
		for panicked, want := range map[string]int{"oh": 2, "another": 1, "y": 1} {
			if got := strings.Count(text, `panic=`+panicked) + strings.Count(text, `panic="`+panicked); got != want {
				t.Errorf("panic %q was logged %d times, want %d:\n%s", panicked, got, want, text)
			}
		}
		fatal(t, stop())
	})
}

// TestC12_EndedIsOfTheLastRun: Ended is empty while another term runs.
func TestC12_EndedIsOfTheLastRun(t *testing.T) {
	inWorld(t, func(w *world) {
		c := newController(w, options{}, isCalled(&calls{}))
		term := newTerm()
		stop := startTerm(w, c, term)
		synctest.Wait()
		term.end(errLater)
		synctest.Wait()
		if err := stop(); !errors.Is(err, errLater) || c.Health().Ended != errLater.Error() {
			t.Errorf("the run ended with %v, health %+v", err, c.Health())
		}
		stop = startTerm(w, c, newTerm())
		synctest.Wait()
		if h := c.Health(); h.State != controller.StateRunning || h.Ended != "" {
			t.Errorf("health: %+v", h)
		}
		fatal(t, stop())
	})
}

// TestC03_ATermLeavesTheVersionsOfItsLastWrites: the versions of a delete, and of a write that was
// applied although the answer was an error. It leaves none if the outcome of a write is not known.
func TestC03_ATermLeavesTheVersionsOfItsLastWrites(t *testing.T) {
	remove := func(ctx context.Context, w *world, x *corev1.ConfigMap) error {
		return w.client.CoreV1().ConfigMaps("a").Delete(ctx, "x", deleteNow)
	}
	write := func(ctx context.Context, w *world, x *corev1.ConfigMap) error {
		_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(x, "2"), updateNow)
		return err
	}
	for name, o := range map[string]struct {
		faults      []apisim.Fault // the faults of an update
		write       func(context.Context, *world, *corev1.ConfigMap) error
		left        bool
		least, most time.Duration // the duration of the end of the run
	}{
		"a delete":           {nil, remove, true, 700 * time.Millisecond, time.Second},
		"an applied failure": {[]apisim.Fault{apisim.RefuseApplied(500)}, write, true, time.Second, 1100 * time.Millisecond},
		"no answer":          {[]apisim.Fault{apisim.CutBefore(0)}, write, false, 2 * time.Second, 2100 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				create(w, configMap("a", "x"))
				delayWatches(w, "", 700*time.Millisecond)
				for _, fault := range o.faults {
					w.server.Inject(apisim.Match{Verb: "update"}, fault)
				}
				called := make(chan struct{})
				c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
					close(called)
					time.Sleep(time.Millisecond) // the end has begun
					return controller.Result{}, o.write(ctx, w, r.Object)
				})
				term := handingTerm{newTerm()}
				term.reached = map[string]string{"nothing": "yet"}
				term.left, term.ok = map[string]string{}, true
				began := time.Now()
				stop := startTerm(w, c, term)
				<-called
				fatal(t, stop())
				if took := time.Since(began); took < o.least || took > o.most {
					t.Errorf("the run ended after %v", took)
				}
				list, version, err := w.server.List(w.ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), "")
				fatal(t, err)
				if len(list) > 0 {
					version = list[0].(metav1.Object).GetResourceVersion()
				}
				if got, left := term.reached["configmaps"], term.reached != nil; left != o.left || left && got != version {
					t.Errorf("the term was given %v, want version %s", term.reached, version)
				}
			})
		})
	}
}
