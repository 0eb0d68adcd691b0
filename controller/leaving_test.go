package controller_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// hasEnded reports whether a channel is closed.
func hasEnded(done <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// runsUntil runs f, and returns its result once it has one.
func runsUntil(f func() error) (result <-chan error) {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}

// TestS2_TheGuidesProgramLeaves has one context for the factory, the controller and the group. After its end,
// calls and informers go on until the group was left. Other informers end with the context.
func TestS2_TheGuidesProgramLeaves(t *testing.T) {
	for name, leaves := range map[string]error{"in order": nil, "with an error": errors.New("calls still run")} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				x := create(w, configMap("a", "x"))
				s := controller.NewSlots(controller.ByNamespace)
				var log calls
				held, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{Slots: s.Held()})
				fatal(t, err)
				secrets, nodes, maps := informer[*corev1.Secret](w), informer[*corev1.Node](w), informer[*corev1.ConfigMap](w)
				c := control(w, held, options{Slots: s, Secondaries: []secondary{controller.Reads(secrets)}}, isCalled(&log))
				ctx, stop := context.WithCancel(w.ctx)
				fatal(t, w.factory.Start(ctx))
				ended := runsUntil(func() error { return c.Run(ctx) })
				fatal(t, s.Claim()) // Join
				late := informer[*corev1.Service](w)
				fatal(t, c.AddSecondary(controller.Reads(late)))
				fatal(t, w.factory.Start(ctx))
				s.Begin(newTerm())
				fill(w.ctx, t, s, slot.All())
				s.Serve(owned(slotsOf("a")))
				log.expect(t, "a/x")
				if hasEnded(s.Ends()) {
					t.Error("it ends before the context")
				}
				stop()
				if !hasEnded(s.Ends()) {
					t.Error("the end of the context does not show")
				}
				time.Sleep(time.Hour)
				update(w, withState(x, "1"))
				log.expect(t, "a/x")
				for i, state := range map[interface{ Health() tidings.Health }]tidings.State{
					held: tidings.StateWatching, secrets: tidings.StateWatching, late: tidings.StateWatching,
					nodes: tidings.StateStopped, maps: tidings.StateStopped,
				} {
					if h := i.Health(); h.State != state {
						t.Errorf("informer %s is %s, want %s", h.Name, h.State, state)
					}
				}
				select {
				case err := <-ended:
					t.Fatalf("Run returns %v before the group was left", err)
				default:
				}
				s.Shut(slot.All())
				s.Left(leaves)
				if err := <-ended; !errors.Is(err, leaves) {
					t.Errorf("Run returns %v", err)
				}
				synctest.Wait()
				if h := held.Health(); h.State != tidings.StateStopped {
					t.Errorf("after the end, the informer is %s", h.State)
				}
			})
		})
	}
}

// TestS2_WithoutAGroupNothingOutlastsItsContext: Run and the informers end with it.
func TestS2_WithoutAGroupNothingOutlastsItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		s, maps := controller.NewSlots(controller.ByNamespace), informer[*corev1.ConfigMap](w)
		c := control(w, maps, options{Slots: s}, nothing)
		ctx, stop := context.WithCancel(w.ctx)
		fatal(t, w.factory.Start(ctx))
		ended := runsUntil(func() error { return c.Run(ctx) })
		synctest.Wait()
		stop()
		fatal(t, <-ended)
		if !hasEnded(s.Ends()) {
			t.Error("the end of the context does not show")
		}
		if h := maps.Health(); h.State != tidings.StateStopped {
			t.Errorf("the informer is %s", h.State)
		}
		if work := s.Work(); work.Started || len(work.Lacks) != 1 {
			t.Errorf("the work is %+v", work)
		}
	})
}

// TestS2_ShutdownEndsAnInformerThatOutlasts its context, and the Run that needs it fails.
func TestS2_ShutdownEndsAnInformerThatOutlasts(t *testing.T) {
	inWorld(t, func(w *world) {
		s, maps := controller.NewSlots(controller.ByNamespace), informer[*corev1.ConfigMap](w)
		c := control(w, maps, options{Slots: s}, nothing)
		fatal(t, s.Claim())
		ctx, stop := context.WithCancel(w.ctx)
		fatal(t, w.factory.Start(ctx))
		ended := runsUntil(func() error { return c.Run(ctx) })
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		stop()
		time.Sleep(time.Minute)
		began := time.Now()
		fatal(t, w.factory.Shutdown(w.ctx))
		if took := time.Since(began); took > 0 {
			t.Errorf("the shutdown took %v", took)
		}
		time.Sleep(time.Minute)
		s.Left(nil)
		if err := <-ended; !errors.Is(err, tidings.ErrStopped) {
			t.Errorf("Run returns %v", err)
		}
	})
}

// TestS2_ARunThatFailsMakesTheProcessLeave, although no context has ended, and returns with its error.
func TestS2_ARunThatFailsMakesTheProcessLeave(t *testing.T) {
	inWorld(t, func(w *world) {
		s, maps := controller.NewSlots(controller.ByNamespace), informer[*corev1.ConfigMap](w)
		c, other := control(w, maps, options{Slots: s}, nothing), newController(w, options{Name: "other", Slots: s}, nothing)
		fatal(t, s.Claim())
		fatal(t, w.factory.Start(w.ctx))
		secrets := informer[*corev1.Secret](w)
		fatal(t, c.AddSecondary(controller.Reads(secrets)))
		fatal(t, w.factory.Start(w.ctx))
		ended, goesOn := runsUntil(func() error { return c.Run(w.ctx) }), runsUntil(func() error { return other.Run(w.ctx) })
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.All())
		s.Serve(owned(slotsOf("a")))
		synctest.Wait()
		secrets.Release()
		time.Sleep(5 * time.Second)
		if !hasEnded(s.Ends()) {
			t.Error("the failure does not show")
		}
		work := s.Work()
		if len(work.Lacks) != 1 || work.Lacks[0] != "test" || work.Started || !work.Ready.IsEmpty() || len(work.Reasons) != 1 {
			t.Errorf("the work is %+v", work)
		}
		if h := c.Health(); h.State != controller.StateStopped || h.Ended == "" {
			t.Errorf("the health is %+v", h)
		}
		if err := s.Warm(w.ctx, slot.All()); err == nil {
			t.Error("it can be warmed")
		}
		s.Left(nil)
		if err := <-ended; !errors.Is(err, tidings.ErrReleased) {
			t.Errorf("Run returns %v", err)
		}
		fatal(t, <-goesOn)
	})
}

// TestS2_AManagerLeaves once its context ends, also if it leads nothing.
func TestS2_AManagerLeaves(t *testing.T) {
	inWorld(t, func(w *world) {
		s := controller.NewSlots(controller.ByNamespace)
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, s.Claim())
		var log calls
		d := table(w, "foo", &log)
		d.Requires = append(d.Requires, configMaps.GroupVersion().WithResource("nothings"))
		fatal(t, m.Add(d))
		if s.Work().Started {
			t.Error("it has started before Run")
		}
		ctx, stop := context.WithCancel(w.ctx)
		ended := runsUntil(func() error { return m.Run(ctx) })
		synctest.Wait()
		if work := s.Work(); !work.Started || len(work.Controllers) > 0 || hasEnded(s.Ends()) {
			t.Errorf("the work is %+v", work)
		}
		stop()
		if !hasEnded(s.Ends()) {
			t.Error("the end of the context does not show")
		}
		time.Sleep(time.Hour)
		select {
		case err := <-ended:
			t.Errorf("Run returns %v before the group was left", err)
		default:
		}
		s.Left(nil)
		fatal(t, <-ended)
	})
}
