package controller_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// neighbour counts the runs of a task that ends with its context.
type neighbour struct{ runs, running atomic.Int32 }

func (n *neighbour) run(ctx context.Context) error {
	n.runs.Add(1)
	n.running.Add(1)
	defer n.running.Add(-1)
	<-ctx.Done()
	return context.Cause(ctx)
}

// everyReplica returns the descriptor of a controller that writes on each replica.
func everyReplica(w *world, log *calls) controller.Descriptor {
	c := newController(w, options{Name: "everywhere"},
		func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Key)
			_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", "of-"+r.Name()), createNow)
			return controller.Result{}, err
		})
	return controller.Descriptor{
		Name: "everywhere", EveryReplica: true, New: func() (controller.Runner, error) { return c, nil },
	}
}

// TestNeighboursOfAnElection: tasks and controllers of every replica run on a standby, and the
// others with the Lease. A lost term ends those alone.
func TestNeighboursOfAnElection(t *testing.T) {
	inWorld(t, func(w *world) {
		var log, beside calls
		var here, led neighbour
		m := electedManager(w, &log)
		create(w, configMap("a", "x"))
		fatal(t, m.Add(everyReplica(w, &beside),
			controller.Descriptor{Name: "server", EveryReplica: true, Task: here.run},
			controller.Descriptor{Name: "led", Task: led.run}))
		release := leadElsewhere(w)
		stop := run(w, m)
		awaitElection(w, m, election.Standby)
		time.Sleep(time.Second)
		synctest.Wait()
		beside.expect(t, "a/x") // and its write is not fenced
		log.expect(t)
		if here.running.Load() != 1 || led.runs.Load() != 0 {
			t.Errorf("on a standby %d tasks of every replica and %d others run", here.running.Load(),
				led.runs.Load())
		}
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] controller everywhere\n")
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] controller server\n")
		release()
		checkLeads(w, m, &log)
		if led.running.Load() != 1 {
			t.Error("the task does not run with the Lease")
		}
		_, err := w.server.Delete(w.ctx, leases, "ops", "test")
		fatal(t, err)
		synctest.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if here.runs.Load() != 1 || led.runs.Load() != 2 {
			t.Errorf("after another term the task of every replica was run %d times, want 1, "+
				"and the other one %d times, want 2", here.runs.Load(), led.runs.Load())
		}
		fatal(t, stop())
		if here.running.Load()+led.running.Load() != 0 {
			t.Error("a task runs after the end")
		}
	})
}

// TestWritesOfTasks: a task of every replica writes at all times, and another one in its own term,
// whatever terms of other managers there are.
func TestWritesOfTasks(t *testing.T) {
	inWorld(t, func(w *world) {
		var log, other calls
		writes := func(name string) func(context.Context) error {
			return func(ctx context.Context) error {
				for n := 0; ; n++ {
					_, err := w.client.CoreV1().Secrets("a").Create(ctx, secret("a", fmt.Sprint(name, n)), createNow)
					log.add("%s writes: %v", name, err)
					select {
					case <-time.After(20 * time.Second):
					case <-ctx.Done():
						_, err = w.client.CoreV1().Secrets("a").Create(context.WithoutCancel(ctx), secret("a", name), createNow)
						log.add("%s writes at the end: %v", name, errors.Is(err, guard.ErrFenced))
						return nil
					}
				}
			}
		}
		m := electedManager(w, &other)
		fatal(t, m.Add(controller.Descriptor{Name: "here", EveryReplica: true, Task: writes("here")},
			controller.Descriptor{Name: "led", Task: writes("led")}))
		release := leadElsewhere(w)
		stop := run(w, m)
		awaitElection(w, m, election.Standby)
		time.Sleep(10 * time.Second)
		log.expect(t, "here writes: <nil>")
		another := w.guard.AddDefaultTerm(newTerm()) // of another manager
		release()
		awaitElection(w, m, election.Leading)
		synctest.Wait()
		if got := log.take(); !slices.Contains(got, "led writes: <nil>") {
			t.Errorf("with the Lease: %q", got)
		}
		_, err := w.server.Delete(w.ctx, leases, "ops", "test")
		fatal(t, err)
		time.Sleep(time.Minute)
		synctest.Wait()
		got := log.take()
		if !slices.Contains(got, "led writes at the end: true") ||
			slices.Contains(got, "here writes at the end: true") {
			t.Errorf("after the term: %q", got)
		}
		another(nil)
		fatal(t, stop())
	})
}

// TestNeighboursAlone: a manager without a controller to lead takes no part in the election.
func TestNeighboursAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		var here neighbour
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{
			Guard: w.guard, Logger: discard, Election: &controller.Election{Namespace: "ops", Name: "test"},
		})
		fatal(t, err)
		fatal(t, m.Add(controller.Descriptor{Name: "server", EveryReplica: true, Task: here.run}))
		stop := run(w, m)
		time.Sleep(time.Minute)
		if here.running.Load() != 1 {
			t.Error("the task does not run")
		}
		fatal(t, stop())
	})
}

// TestNeighboursOfAGroup: a group gives a task to one member, and that of every replica is not its
// entry.
func TestNeighboursOfAGroup(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByUID)
		var here, led neighbour
		m, err := controller.NewManager(w.factory,
			controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.Add(controller.Descriptor{Name: "server", EveryReplica: true, Task: here.run},
			controller.Descriptor{Name: "led", Task: led.run}))
		stop := run(w, m)
		s.Begin(newTerm())
		synctest.Wait()
		if here.running.Load() != 1 || led.runs.Load() != 0 {
			t.Errorf("before the entry is served, %d and %d run", here.running.Load(), led.runs.Load())
		}
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, nil)
		synctest.Wait()
		if led.running.Load() != 1 {
			t.Error("the task does not run")
		}
		s.Shut(slot.Of(slot.Count))
		synctest.Wait()
		if here.running.Load() != 1 || led.running.Load() != 0 {
			t.Errorf("when the entry is shut, %d and %d run", here.running.Load(), led.running.Load())
		}
		fatal(t, stop())
	})
}

// TestNeighboursUntilAGroupWasLeft: the task of every replica lasts as long as the calls, whether
// the end of the manager's context makes the process leave, or that of another Run.
func TestNeighboursUntilAGroupWasLeft(t *testing.T) {
	for _, byAnother := range []bool{false, true} {
		inWorld(t, func(w *world) {
			s := controller.NewSlots(controller.ByUID)
			var here neighbour
			m, err := controller.NewManager(w.factory,
				controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
			fatal(t, err)
			fatal(t, m.Add(controller.Descriptor{Name: "server", EveryReplica: true, Task: here.run}))
			ctx, cancel := context.WithCancel(w.ctx)
			defer cancel()
			ended := make(chan error, 1)
			go func() { ended <- m.Run(ctx) }()
			fatal(t, s.Claim())
			s.Begin(newTerm())
			synctest.Wait()
			if !byAnother {
				cancel()
			}
			synctest.Wait()
			if here.running.Load() != 1 {
				t.Error("the task has ended before the group was left")
			}
			s.Left(nil)
			fatal(t, <-ended)
			if here.running.Load() != 0 {
				t.Error("the task runs after the group was left")
			}
		})
	}
}

// TestTasksThatReturn: one without an error is done, and one with an error ends the manager.
func TestTasksThatReturn(t *testing.T) {
	inWorld(t, func(w *world) {
		var here neighbour
		var once atomic.Int32
		fails := make(chan struct{})
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
		fatal(t, err)
		fatal(t, m.Add(
			controller.Descriptor{Name: "server", Task: here.run},
			controller.Descriptor{Name: "once", Task: func(context.Context) error {
				once.Add(1)
				return nil
			}},
			controller.Descriptor{Name: "fails", Task: func(context.Context) error {
				<-fails
				return errLater
			}}))
		stop := run(w, m)
		time.Sleep(time.Minute)
		if s := m.Health().Controllers[1].State; s != controller.StateDone || once.Load() != 1 {
			t.Errorf("the task that has returned is %s after %d runs", s, once.Load())
		}
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] controller once\n")
		close(fails)
		time.Sleep(time.Second)
		synctest.Wait()
		checkProbe(t, m, "/livez", http.StatusServiceUnavailable, "[-] controller fails "+errLater.Error())
		if h := m.Health().Controllers[2]; h.State != controller.StateStopped || h.Ended != errLater.Error() {
			t.Errorf("the task that has failed: %+v", h)
		}
		if err := stop(); !errors.Is(err, errLater) || here.running.Load() != 0 {
			t.Errorf("the manager ends with %v, and %d tasks run", err, here.running.Load())
		}
	})
}

// TestChecksOfTheProgram are answered beside the manager's.
func TestChecksOfTheProgram(t *testing.T) {
	inWorld(t, func(w *world) {
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Logger: discard})
		fatal(t, err)
		fatal(t, m.Add(controller.Descriptor{Name: "server", Task: new(neighbour).run}))
		var failure atomic.Pointer[error]
		failure.Store(new(error))
		check := func(*http.Request) error { return *failure.Load() }
		fatal(t, m.AddReadyzCheck("webhooks", check))
		fatal(t, m.AddHealthzCheck("disk", func(r *http.Request) error {
			if r.URL.Path == "/livez" {
				return nil
			}
			return errLater
		}))
		for _, wrong := range []error{
			m.AddReadyzCheck("webhooks", check), m.AddHealthzCheck("", check), m.AddHealthzCheck("x", nil),
		} {
			if wrong == nil {
				t.Error("a check without a name of its own, or without a function, is taken")
			}
		}
		stop := run(w, m)
		synctest.Wait()
		checkProbe(t, m, "/readyz", http.StatusOK, "[+] webhooks\n")
		failure.Store(&errLater)
		checkProbe(t, m, "/readyz", http.StatusServiceUnavailable, "[-] webhooks "+errLater.Error())
		checkProbe(t, m, "/livez", http.StatusOK, "[+] disk\n")
		checkProbe(t, m, "/healthz", http.StatusServiceUnavailable, "[-] disk "+errLater.Error())
		if _, checks := probe(m, "/livez"); strings.Contains(checks, "webhooks") {
			t.Error("a check of /readyz is in /livez")
		}
		fatal(t, stop())
	})
}
