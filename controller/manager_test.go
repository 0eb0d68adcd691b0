package controller_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// table returns a descriptor of a controller of ConfigMaps that logs its calls.
func table(w *world, name string, log *calls) controller.Descriptor {
	return controller.Descriptor{Name: name, New: func() (controller.Runner, error) {
		configMaps, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
		if err != nil {
			return nil, err
		}
		return controller.New(configMaps, controller.Options[*corev1.ConfigMap]{
			Name: name, Guard: w.guard, Logger: discard,
		}, func(_ context.Context, r controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			log.add("%s %s", name, r.Key)
			return controller.Result{}, nil
		})
	}}
}

// run runs a manager, and returns a function that stops it.
func run(w *world, m *controller.Manager) (stop func() error) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func TestManagerRunsThoseThatNamesSelect(t *testing.T) {
	for flag, want := range map[string][]string{
		"":          {"bar", "foo"},
		"*":         {"bar", "foo"},
		"*,-bar":    {"foo"},
		"*,off":     {"bar", "foo", "off"},
		"foo":       {"foo"},
		"*,-feu":    {"bar"},
		"off, feu ": {"foo", "off"},
	} {
		inWorld(t, func(w *world) {
			var names controller.Names
			fatal(t, names.Set(flag))
			m, err := controller.NewManager(w.factory, controller.ManagerOptions{Controllers: names, Logger: discard})
			fatal(t, err)
			var log calls
			foo, off := table(w, "foo", &log), table(w, "off", &log)
			foo.Aliases, off.DefaultOff = []string{"feu"}, true
			fatal(t, m.Add(foo, table(w, "bar", &log), off))
			create(w, configMap("a", "x"))
			stop := run(w, m)
			synctest.Wait()
			var got []string
			for _, line := range log.take() {
				got = append(got, strings.TrimSuffix(line, " a/x"))
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("--controllers=%s runs %q, want %q", flag, got, want)
			}
			fatal(t, stop())
		})
	}
}

func TestManagerRefusesWhatCannotRun(t *testing.T) {
	inWorld(t, func(w *world) {
		var log calls
		foo := table(w, "foo", &log)
		wrong := foo
		wrong.Name = "other"
		for want, attempt := range map[string]func(m *controller.Manager) error{
			`controller: Manager.Add "foo": the name "foo" is taken by controller "foo"`: func(m *controller.Manager) error {
				return m.Add(foo, foo)
			},
			`controller: Manager.Add "bar": the name "foo" is taken by controller "foo"`: func(m *controller.Manager) error {
				return m.Add(foo, controller.Descriptor{Name: "bar", Aliases: []string{"foo"}, New: foo.New})
			},
			`controller: Manager.Add "x": set one of Descriptor.New and Descriptor.Task`: func(m *controller.Manager) error {
				return m.Add(controller.Descriptor{Name: "x", New: foo.New, Task: new(neighbour).run})
			},
			`controller: Manager.Add "": the descriptor needs a name`: func(m *controller.Manager) error {
				return m.Add(controller.Descriptor{})
			},
			`controller: Manager.Run: no controller is to run: the names are `: func(m *controller.Manager) error {
				return m.Run(w.ctx)
			},
			`controller: Manager.Run: Descriptor.New of "other" has made a controller of the name "foo"`: func(m *controller.Manager) error {
				fatal(t, m.Add(wrong))
				return m.Run(w.ctx)
			},
		} {
			m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
			fatal(t, err)
			if err := attempt(m); err == nil || err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Controllers: controller.Names{"*", "-fou"}})
		fatal(t, err)
		fatal(t, m.Add(foo))
		want := `controller: Manager.Run: there is no controller "fou": the names are foo`
		if err := m.Run(w.ctx); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
		used := controller.NewSlots(controller.ByUID)
		_, err = controller.NewManager(w.factory, controller.ManagerOptions{Slots: used, Guard: w.guard})
		fatal(t, err)
		for want, o := range map[string]controller.ManagerOptions{
			"need ManagerOptions.Guard":  {Election: &controller.Election{}},
			"and Slots, need Manager":    {Slots: controller.NewSlots(controller.ByUID)},
			"leave the Election out":     {Slots: used, Election: &controller.Election{}, Guard: w.guard},
			"Slots belong to another ma": {Slots: used, Guard: w.guard},
		} {
			if _, err = controller.NewManager(w.factory, o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("the error is %v, want %s", err, want)
			}
		}
		m, err = controller.NewManager(w.factory, controller.ManagerOptions{
			Slots: controller.NewSlots(controller.ByUID), Guard: w.guard,
		})
		fatal(t, err)
		for i := range 65 {
			fatal(t, m.Add(table(w, fmt.Sprint("c", i), &log)))
		}
		want = "controller: Manager.Run: 65 controllers without Options.Slots are to run: a group leads at most 64"
		if err := m.Run(w.ctx); err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	})
}

// TestC11_AManagerLeadsWhatTheGroupGivesIt calls the methods that a group calls.
func TestC11_AManagerLeadsWhatTheGroupGivesIt(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, configMap("default", "a"))
		slots, log := controller.NewSlots(controller.ByUID), new(calls)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Slots: slots, Guard: w.guard, Logger: discard,
		})
		fatal(t, err)
		fatal(t, m.Add(table(w, "foo", log), table(w, "bar", log)))
		if got := led(slots); len(got) > 0 {
			t.Errorf("the controllers are %v before Run", got)
		}
		stop := run(w, m)
		synctest.Wait()
		slots.Begin(newTerm())
		fill(w.ctx, t, slots, slot.Of(slot.Count))
		lead(slots, nil)
		time.Sleep(5 * time.Second)
		if got, want := led(slots), (map[string]bool{"foo": true, "bar": false}); !maps.Equal(got, want) {
			t.Errorf("the controllers are %v, want %v", got, want)
		}
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] controller foo\n[+] controller bar (standby)\n")
		if got := log.take(); !slices.Equal(got, []string{"foo default/a"}) {
			t.Errorf("the calls are %v", got)
		}
		versions, err := resign(w.ctx, slots)
		if err != nil || versions["configmaps"] == "" {
			t.Errorf("what is left: %v, %v", versions, err)
		}
		lead(slots, versions)
		if again, err := resign(w.ctx, slots); err != nil || !maps.Equal(again, versions) {
			t.Errorf("what is left: %v, %v, want %v", again, err, versions)
		}
		fatal(t, stop())
		if work := slots.Work(); !slices.Equal(work.Lacks, []string{"foo", "bar"}) || work.Started {
			t.Errorf("the work is %+v after Run", work)
		}
	})
}

func TestManagerStartsAControllerWhenItsResourceAppears(t *testing.T) {
	inWorld(t, func(w *world) {
		gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
		var log calls
		d := table(w, "late", &log)
		d.Requires = []schema.GroupVersionResource{gvr}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
		fatal(t, err)
		fatal(t, m.Add(d, table(w, "foo", &log)))
		create(w, configMap("a", "x"))
		stop := run(w, m)
		synctest.Wait()
		if got := log.take(); !slices.Equal(got, []string{"foo a/x"}) {
			t.Errorf("calls: %q", got)
		}
		if missing := m.Health().Skipped["late"]; !strings.Contains(missing, "widgets.v1.example.com: the server could not find") {
			t.Errorf("skipped for %q", missing)
		}
		fatal(t, w.server.Register(apisim.Resource{
			Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource, Kind: "Widget", Namespaced: true,
		}))
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := log.take(); !slices.Equal(got, []string{"late a/x"}) {
			t.Errorf("calls: %q", got)
		}
		fatal(t, stop())
	})
}

// TestC10_AWriteWithAnotherContext: the term of the manager's election fences it.
func TestC10_AWriteWithAnotherContext(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard,
			Election: &controller.Election{Namespace: "ops", Name: "test"},
		})
		fatal(t, err)
		var log calls
		fatal(t, m.AddController(newController(w, options{}, isCalled(&log))))
		stop := run(w, m)
		write := func(name string) error {
			_, err := w.client.CoreV1().ConfigMaps("b").Create(w.ctx, configMap("b", name), createNow)
			return err
		}
		time.Sleep(time.Second)
		fatal(t, write("in-the-first-term"))
		outage := w.server.Inject(apisim.Match{Resource: "leases.coordination.k8s.io"}, apisim.Refuse(503, 0))
		time.Sleep(time.Minute)
		if err := write("between-terms"); !errors.Is(err, guard.ErrFenced) {
			t.Errorf("the write ended with %v", err)
		}
		outage.Lift()
		time.Sleep(time.Minute)
		fatal(t, write("in-the-second-term"))
		fatal(t, stop())
		if err := write("after-the-release"); !errors.Is(err, guard.ErrFenced) {
			t.Errorf("the write ended with %v", err)
		}
	})
}

// TestC11_TakeOvers: two replicas on one server. The second takes over within a second of a stop,
// and within the duration of the lease and two seconds of a crash.
func TestC11_TakeOvers(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ops"}})
		create(w, configMap("a", "x"))
		var log calls
		replica := func(name string) (stop func() error, ready func() int) {
			config := w.server.Config()
			config.UserAgent, config.QPS = name, -1
			factory, err := tidings.NewFactory(config, tidings.FactoryOptions{Logger: discard})
			fatal(t, err)
			own := *w
			own.guard, err = controller.NewGuard(config, controller.GuardOptions{})
			fatal(t, err)
			own.factory = factory
			m, err := controller.NewManager(factory, controller.ManagerOptions{
				Guard: own.guard, Logger: discard,
				Election: &controller.Election{Namespace: "ops", Name: "test", Identity: name},
			})
			fatal(t, err)
			d := table(&own, name, &log)
			fatal(t, m.Add(d))
			return run(w, m), func() int {
				recorder := httptest.NewRecorder()
				m.Handler().ServeHTTP(recorder, httptest.NewRequest("GET", "/readyz", nil))
				return recorder.Code
			}
		}
		// next waits for the next call, and returns it and the time until it came.
		next := func() (string, time.Duration) {
			began := time.Now()
			for time.Since(began) < time.Minute {
				if got := log.take(); len(got) > 0 {
					return strings.Join(got, ", "), time.Since(began)
				}
				time.Sleep(10 * time.Millisecond)
				synctest.Wait()
			}
			return "none", time.Since(began)
		}
		stopFirst, firstReady := replica("first")
		if got, _ := next(); got != "first a/x" {
			t.Errorf("calls: %s", got)
		}
		stopSecond, secondReady := replica("second")
		time.Sleep(time.Minute)
		if got := log.take(); len(got) > 0 || firstReady() != 200 || secondReady() != 200 {
			t.Errorf("calls of a standby: %q; readiness: %d and %d", got, firstReady(), secondReady())
		}
		fatal(t, stopFirst())
		if got, took := next(); got != "second a/x" || took > time.Second {
			t.Errorf("after a stop: %s in %v", got, took)
		}
		stopThird, _ := replica("third")
		time.Sleep(time.Minute)
		w.server.Inject(apisim.Match{UserAgent: "second", Verb: "update"}, apisim.Refuse(503, 0))
		if got, took := next(); got != "third a/x" || took > 17*time.Second {
			t.Errorf("after a crash: %s in %v", got, took)
		}
		fatal(t, stopThird())
		fatal(t, stopSecond())
	})
}

// runnerOfTests is a Runner that is no Controller.
type runnerOfTests struct {
	running atomic.Int32
	terms   chan controller.Term
}

func (*runnerOfTests) Name() string { return "other" }

func (*runnerOfTests) Health() controller.Health { return controller.Health{Name: "other"} }

func (r *runnerOfTests) RunTerm(ctx context.Context, term controller.Term) error {
	r.running.Add(1)
	defer r.running.Add(-1)
	r.terms <- term
	select {
	case <-ctx.Done():
	case <-term.Done():
	}
	time.Sleep(time.Second)
	return nil
}

// TestC11_AGroupLeadsARunnerOfAnotherKind, which runs while its slot is served.
func TestC11_AGroupLeadsARunnerOfAnotherKind(t *testing.T) {
	inWorld(t, func(w *world) {
		slots, r := controller.NewSlots(controller.ByUID), &runnerOfTests{terms: make(chan controller.Term, 10)}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: slots, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		terms := []*testTerm{newTerm(), newTerm()}
		for _, term := range terms {
			slots.Begin(term)
			fill(w.ctx, t, slots, slot.Of(slot.Count))
			for range 2 {
				lead(slots, nil)
				time.Sleep(time.Second)
				if n, got := r.running.Load(), led(slots); n != 1 || !got["other"] || <-r.terms != controller.Term(term) {
					t.Fatalf("%d runs, and the controllers are %v", n, got)
				}
				bounded, cancel := context.WithTimeout(w.ctx, time.Millisecond)
				if _, err := resign(bounded, slots); !errors.Is(err, controller.ErrCallsRunning) {
					t.Errorf("it resigns while it runs: %v", err)
				}
				cancel()
				versions, err := resign(w.ctx, slots)
				if err != nil || versions == nil || r.running.Load() != 0 {
					t.Errorf("%d runs, and what is left is %v, %v", r.running.Load(), versions, err)
				}
			}
			lead(slots, nil)
			time.Sleep(time.Second)
			<-r.terms
			term.end(errors.New("lost"))
			time.Sleep(2 * time.Second)
			if n := r.running.Load(); n != 0 {
				t.Errorf("%d runs after the term", n)
			}
		}
		fatal(t, stop())
	})
}
