package controller_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// replica is one process with an API server of its own before the common storage.
type replica struct {
	*world
	instance *apisim.Instance
	s        *controller.Slots
	term     *testTerm
}

// withReplicas runs a test with processes that have a lag each.
func withReplicas(t *testing.T, o apisim.Options, test func(w *world, process func(name string, by slot.Key) *replica)) {
	synctest.Test(t, func(t *testing.T) {
		server := o.Start(t)
		ctx, stop := context.WithCancel(t.Context())
		w := &world{T: t, ctx: ctx, server: server}
		for _, name := range []string{"a", "b"} {
			create(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		var all []*replica
		process := func(name string, by slot.Key) *replica {
			instance := server.AddInstance()
			config := instance.Config()
			config.UserAgent, config.QPS = name, -1
			factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
				Logger: slog.New(slog.DiscardHandler), Transport: tidings.Transport{NoStreamedLists: true},
			})
			fatal(t, err)
			guard, err := controller.NewGuard(config, controller.GuardOptions{})
			fatal(t, err)
			client, err := kubernetes.NewForConfig(guard.Config())
			fatal(t, err)
			p := &replica{&world{t, ctx, server, factory, guard, client}, instance, controller.NewSlots(by), newTerm()}
			all = append(all, p)
			return p
		}
		defer func() {
			for _, p := range all {
				p.term.end(errors.New("the test is over"))
			}
			stop()
			for _, p := range all {
				fatal(t, p.factory.Shutdown(context.Background()))
			}
			time.Sleep(time.Minute)
			synctest.Wait()
		}()
		test(w, process)
	})
}

// begins runs a controller of the process, and begins its membership with some slots warm.
func (p *replica) begins(slots slot.Set, controllers ...interface{ Run(context.Context) error }) {
	p.Helper()
	fatal(p.T, p.factory.Start(p.ctx))
	for _, c := range controllers {
		go c.Run(p.ctx) //nolint:errcheck
	}
	p.s.Begin(p.term)
	fill(p.ctx, p.T, p.s, slots)
}

// manages runs a controller named "single" with a manager, and begins a membership in which the process
// may lead it.
func (p *replica) manages(c controller.Runner) (stop func() error) {
	p.Helper()
	m, err := controller.NewManager(p.factory, controller.ManagerOptions{Slots: p.s, Guard: p.guard, Logger: discard})
	fatal(p.T, err)
	fatal(p.T, m.AddController(c))
	stop = run(p.world, m)
	p.s.Begin(p.term)
	fill(p.ctx, p.T, p.s, slot.Of(slot.Count))
	return stop
}

// takes gives slots with versions to the process.
func (p *replica) takes(slots slot.Set, versions map[string]string) {
	var all []slot.Owned
	for n := range slots.Slots() {
		all = append(all, slot.Owned{Number: n, Epoch: 2, Versions: versions})
	}
	p.s.Serve(all)
}

// leaves takes slots from the process, and returns the versions that it leaves.
func (p *replica) leaves(slots slot.Set) map[string]string {
	p.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 30*time.Second)
	defer cancel()
	versions, err := drain(ctx, p.s, slots)
	fatal(p.T, err)
	p.s.Drop(slots)
	return versions
}

// drain shuts entries, and waits until no call for them runs and the caches show their writes, as a group
// does. It returns the versions that show them.
func drain(ctx context.Context, s *controller.Slots, entries slot.Set) (map[string]string, error) {
	s.Shut(entries)
	for {
		versions, running, known := map[string]string{}, 0, true
		for n := range entries.Slots() {
			c := s.Calls(n)
			running, known = running+c.Running, known && c.Known
			for part, version := range c.Versions {
				if order, ok := delta.CompareDecimal(versions[part], version); !ok || order < 0 {
					versions[part] = version
				}
			}
		}
		if running == 0 && known {
			return versions, nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			if running > 0 {
				return nil, fmt.Errorf("%w: %d", controller.ErrCallsRunning, running)
			}
			return nil, errUnknown
		}
	}
}

// errUnknown is the error of drain if no call runs, and the versions are not known.
var errUnknown = errors.New("the versions are not known")

// lead gives the first controller that is led as a whole to a process, and resign takes it away.
func lead(s *controller.Slots, versions map[string]string) {
	s.Serve([]slot.Owned{{Number: slot.Count, Versions: versions}})
}

func resign(ctx context.Context, s *controller.Slots) (map[string]string, error) {
	versions, err := drain(ctx, s, slot.Of(slot.Count))
	if err == nil {
		s.Drop(slot.Of(slot.Count))
	}
	return versions, err
}

// led returns the controllers that can be led as a whole, and whether each of them is led here and ready.
func led(s *controller.Slots) map[string]bool {
	w, names := s.Work(), map[string]bool{}
	for i, name := range w.Controllers {
		names[name] = w.Ready.Has(slot.Count + i)
	}
	return names
}

// gapOfHandOver hands slots from a to b, and returns the time until b calls.
func gapOfHandOver(a, b *replica, slots slot.Set, log *calls) time.Duration {
	a.Helper()
	versions := a.leaves(slots)
	log.take()
	began := time.Now()
	b.takes(slots, versions)
	for time.Since(began) < time.Minute {
		time.Sleep(100 * time.Millisecond)
		if got := log.take(); len(got) > 0 {
			break
		}
	}
	return time.Since(began)
}
