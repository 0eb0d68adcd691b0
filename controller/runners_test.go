package controller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// canceled is a Runner that returns the error of its context.
type canceled struct {
	runnerOfTests
	runs  atomic.Int32
	ends  error // what RunTerm returns instead; nil is the error of the context
	early bool  // RunTerm returns at once, without an error
}

func (r *canceled) RunTerm(ctx context.Context, _ controller.Term) error {
	if r.runs.Add(1); r.early {
		return nil
	}
	<-ctx.Done()
	if r.ends != nil {
		return r.ends
	}
	return ctx.Err()
}

// TestS2_ARunnerThatReturnsTheErrorOfItsContext is handed over, and taken back, as any other one.
func TestS2_ARunnerThatReturnsTheErrorOfItsContext(t *testing.T) {
	inWorld(t, func(w *world) {
		s, r := controller.NewSlots(controller.ByUID), &canceled{}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, nil)
		synctest.Wait()
		for n := range int32(3) {
			if got := r.runs.Load(); got != n+1 {
				t.Fatalf("it was run %d times, want %d", got, n+1)
			}
			s.Shut(slot.Of(slot.Count))
			synctest.Wait()
			select {
			case <-s.Ends():
				t.Fatal("the process is to leave the group")
			default:
			}
			s.Unshut(slot.Of(slot.Count))
			synctest.Wait()
		}
		fatal(t, stop())
	})
}

// TestARunnerThatEndsByItself is run again, each second.
func TestARunnerThatEndsByItself(t *testing.T) {
	inWorld(t, func(w *world) {
		s, r := controller.NewSlots(controller.ByUID), &canceled{early: true}
		m, err := controller.NewManager(w.factory, controller.ManagerOptions{Slots: s, Guard: w.guard, Logger: discard})
		fatal(t, err)
		fatal(t, m.AddController(r))
		stop := run(w, m)
		s.Begin(newTerm())
		fill(w.ctx, t, s, slot.Of(slot.Count))
		lead(s, nil)
		time.Sleep(time.Minute)
		if got := r.runs.Load(); got < 30 || got > 70 {
			t.Errorf("it was run %d times in a minute", got)
		}
		fatal(t, stop())
	})
}
