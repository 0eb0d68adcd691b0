package controller_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
)

// leadElsewhere has another replica lead the election ops/test until it is released.
func leadElsewhere(w *world) (release func()) {
	w.Helper()
	other, err := election.New(w.guard.Direct(), election.Options{Namespace: "ops", Name: "test", Logger: discard})
	fatal(w.T, err)
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() {
		ended <- other.Run(ctx, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			return nil
		})
	}()
	time.Sleep(5 * time.Second)
	return func() {
		cancel()
		fatal(w.T, <-ended)
	}
}

// TestC10_AReplicaThatHasNeverLed writes without the context of a call, as a standby.
func TestC10_AReplicaThatHasNeverLed(t *testing.T) {
	inWorld(t, func(w *world) {
		m := electedManager(w, new(calls))
		release := leadElsewhere(w)
		stop := run(w, m)
		time.Sleep(time.Second)
		synctest.Wait()
		if s := m.Health().Election.State; s != election.Standby {
			t.Fatalf("the election is %s", s)
		}
		_, err := w.client.CoreV1().ConfigMaps("b").Create(w.ctx, configMap("b", "of-a-standby"), createNow)
		if !errors.Is(err, guard.ErrFenced) || !strings.Contains(err.Error(), "has not led yet") {
			t.Errorf("the error of a write is %v", err)
		}
		release()
		fatal(t, stop())
	})
}

// TestC10_TwoElectionsOfAGuard: the writes without a call are sent while one of the terms is open.
func TestC10_TwoElectionsOfAGuard(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		write := func(name string) error {
			_, err := w.client.CoreV1().ConfigMaps("b").Create(w.ctx, configMap("b", name), createNow)
			return err
		}
		var log calls
		for _, name := range []string{"one", "two"} {
			m, err := controller.NewManager(w.factory, controller.ManagerOptions{
				Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: name},
			})
			fatal(t, err)
			fatal(t, m.AddController(newController(w, options{Name: name}, isCalled(&log))))
			defer func(stop func() error) { stop() }(run(w, m)) //nolint:errcheck // the terms were lost
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		fatal(t, write("both"))
		w.server.Inject(apisim.Match{Resource: "leases.coordination.k8s.io", Verb: "create"}, apisim.Refuse(500, 0))
		for n, name := range []string{"two", "one"} {
			_, err := w.server.Delete(w.ctx, leases, "ops", name)
			fatal(t, err)
			time.Sleep(100 * time.Millisecond)
			synctest.Wait()
			if err := write(name); n == 0 && err != nil || n == 1 && !errors.Is(err, guard.ErrFenced) {
				t.Errorf("%d of two terms are lost, and the error of a write is %v", n+1, err)
			}
		}
	})
}

// TestC09_TwoManagersOfAFactory: the informers stop with the second manager.
func TestC09_TwoManagersOfAFactory(t *testing.T) {
	for _, first := range []int{0, 1} {
		inWorld(t, func(w *world) {
			x := create(w, withState(configMap("a", "x"), "0"))
			var logs [2]calls
			var stops []func() error
			for i := range logs {
				m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
				fatal(t, err)
				fatal(t, m.AddController(newController(w, options{Name: fmt.Sprint("c", i)}, logsStates(&logs[i]))))
				stops = append(stops, run(w, m))
				time.Sleep(time.Second)
			}
			for i := range logs {
				logs[i].expect(t, "0")
			}
			fatal(t, stops[first]())
			update(w, withState(x, "1"))
			time.Sleep(time.Second)
			synctest.Wait()
			logs[1-first].expect(t, "1")
			fatal(t, stops[1-first]())
			if err := w.factory.Start(w.ctx); !errors.Is(err, tidings.ErrStopped) {
				t.Errorf("the factory starts again: %v", err)
			}
		})
	}
}

// TestC09_AManagerThatBeginsToRunAtItsEnd has another one that has stopped the factory meanwhile.
func TestC09_AManagerThatBeginsToRunAtItsEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		var all [2]*controller.Manager
		for i := range all {
			var err error
			all[i], err = controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
			fatal(t, err)
			fatal(t, all[i].AddController(newController(w, options{Name: fmt.Sprint("c", i)}, isCalled(&calls{}))))
		}
		ctx, stop := context.WithCancel(w.ctx)
		stop()
		for i, m := range all {
			if err := m.Run(ctx); err != nil {
				t.Errorf("manager %d: %v", i, err)
			}
		}
	})
}

// TestC11_AStandbyWaitsForWhatAControllerRequires: it appears while another replica leads.
func TestC11_AStandbyWaitsForWhatAControllerRequires(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		var log calls
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		d := table(w, "late", &log)
		d.Requires = []schema.GroupVersionResource{gvr}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: "test"},
		})
		fatal(t, err)
		fatal(t, m.Add(d))
		release := leadElsewhere(w)
		stop := run(w, m)
		time.Sleep(time.Second)
		fatal(t, w.server.Register(apisim.Resource{
			Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource, Kind: "Widget", Namespaced: true,
		}))
		time.Sleep(time.Minute)
		synctest.Wait()
		log.expect(t)
		release()
		time.Sleep(2 * time.Second) // the other replica has left no versions: the caches catch up first
		log.expect(t, "late a/x")
		fatal(t, stop())
	})
}

// TestC11_ACallbackThatBlocks does not hold up the end.
func TestC11_ACallbackThatBlocks(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		release := make(chan struct{})
		defer synctest.Wait()
		defer close(release)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{
				Namespace: "ops", Name: "test", OnNewLeader: func(string) { <-release },
			},
		})
		fatal(t, err)
		fatal(t, m.Add(table(w, "test", new(calls))))
		stop := run(w, m)
		time.Sleep(10 * time.Second)
		began := time.Now()
		fatal(t, stop())
		if took := time.Since(began); took > time.Minute {
			t.Errorf("the end took %v", took)
		}
	})
}

// TestC09_AStopGraceBeyondAMinute: the Lease is held for as long as a controller gives its calls.
func TestC09_AStopGraceBeyondAMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: "test"},
		})
		fatal(t, err)
		began := make(chan struct{})
		fatal(t, m.AddController(newController(w, options{StopGrace: 45 * time.Second},
			func(context.Context, request) (controller.Result, error) {
				close(began)
				time.Sleep(80 * time.Second)
				return controller.Result{}, nil
			})))
		stop := run(w, m)
		<-began
		fatal(t, stop())
	})
}

// TestReadinessOfAManagerThatDoesNotRun probes before Run, and after it has failed.
func TestReadinessOfAManagerThatDoesNotRun(t *testing.T) {
	inWorld(t, func(w *world) {
		m := electedManager(w, new(calls))
		checkProbe(t, m, "/livez", 200, "ok")
		checkProbe(t, m, "/readyz", 503, "does not run yet")
		w.server.Inject(apisim.Match{Resource: "leases.coordination.k8s.io"}, apisim.Refuse(403, 0))
		if m.Run(w.ctx) == nil {
			t.Error("the server refuses the Lease, and Run has no error")
		}
		checkProbe(t, m, "/livez", 503, "grant the verb")
		checkProbe(t, m, "/readyz", 503, "has ended")
	})
}

// TestNewThatMakesNothing returns neither a controller nor an error.
func TestNewThatMakesNothing(t *testing.T) {
	for name, made := range map[string]controller.Runner{"nil": nil, "a nil pointer": (*controller.Controller[*corev1.ConfigMap])(nil)} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				m, err := controller.NewManager(w.factory, controller.ManagerOptions{Guard: w.guard, Logger: discard})
				fatal(t, err)
				fatal(t, m.Add(controller.Descriptor{Name: "empty", New: func() (controller.Runner, error) { return made, nil }}))
				if err := m.Run(w.ctx); err == nil || !strings.Contains(err.Error(), `"empty" has made no controller`) {
					t.Errorf("the error is %v", err)
				}
			})
		})
	}
}

// TestNamesOfARepeatedFlag: the first value replaces the default, the others are appended.
func TestNamesOfARepeatedFlag(t *testing.T) {
	names := controller.Names{"*"}
	flags := flag.NewFlagSet("test", flag.ContinueOnError)
	flags.Var(&names, "controllers", names.Usage())
	fatal(t, flags.Parse([]string{"--controllers=a,b", "--controllers=-c", "--controllers="}))
	if want := (controller.Names{"a", "b", "-c"}); !slices.Equal(names, want) {
		t.Errorf("the names are %q, want %q", names, want)
	}
}
