package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// controllerMember is a controller as a member of a group.
type controllerMember[T tidings.Object] struct {
	*share
	c *Controller[T]
}

func (m *controllerMember[T]) Name() string { return m.c.Name() }

// isStandby reports whether another process is to lead the controller.
func (m *controllerMember[T]) isStandby() bool {
	return m != nil && !m.IsDivided() && !m.IsOpen(m.Whole)
}

// runMemberships has one run for each membership of the group, until ctx ends and the group was
// left.
func (m *controllerMember[T]) runMemberships(ctx context.Context) error {
	return m.run(ctx, func(lasting context.Context) (err error) {
		for last := Term(nil); err == nil; {
			term := m.group.stay.next(lasting, last)
			if term == nil {
				break
			}
			err = m.c.runTerm(lasting, term)
			if last = term; hasEndedWith(term, err) {
				err = nil
			}
		}
		m.c.mu.Lock()
		defer m.c.mu.Unlock()
		m.c.last = err
		return err
	})
}

// prolong makes the informers go on until the group was left, if there is one.
func (m *controllerMember[T]) prolong() {
	for _, f := range m.c.informers.All() {
		m.group.stay.prolong(f)
	}
}

func (m *controllerMember[T]) setDefaultTerm(t Term) {
	if m.c.o.Guard != nil { // a controller that is led as a whole may do without
		m.c.o.Guard.SetDefaultTerm(t)
	}
}

// warm waits until the run of a term has started.
func (m *controllerMember[T]) warm(ctx context.Context, t Term) error {
	var err error
	if !m.changed.await(ctx, func() bool {
		_, isOver, failure := m.state()
		r := m.c.running.Load()
		hasStarted := r != nil && r.term == t && r.hasStarted()
		if !hasStarted && isOver && failure != nil {
			err = fmt.Errorf("it runs no more: %w", failure)
		}
		return hasStarted || err != nil
	}) {
		return context.Cause(ctx)
	}
	return err
}

func (m *controllerMember[T]) serve(owned []slot.Owned) {
	for _, o := range owned {
		m.c.barrier.Reached(o.Number, o.Versions) // the next owner has to reach them too
	}
	m.settle(m.Serve(owned))
}

// settle begins the waits for versions, and queues keys that were parked because their entries were
// shut. By UID, a call for another object of such a key, in another slot, may wait too.
func (m *controllerMember[T]) settle(parked []string) {
	for _, key := range parked {
		m.c.barrier.Release(key)
	}
	if r := m.c.running.Load(); r != nil {
		r.wake(parked)
		r.serve()
	}
}

// shown returns the versions that show all writes to an entry. While the entry is shut, the keys
// whose writes do not show are held: so the server is asked about them when they are due.
func (m *controllerMember[T]) shown(n int, shut bool) (versions map[string]string, ok bool) {
	keys := m.c.barrier.Unsettled(slot.Of(n))
	for _, key := range keys {
		if !shut {
			break
		}
		if parked, _ := m.c.barrier.Hold(key); parked {
			m.Park(n, key)
		} else {
			m.c.wake(key)
		}
	}
	return m.c.barrier.Written(slot.Of(n)), len(keys) == 0
}

// forget forgets the keys of entries.
func (m *controllerMember[T]) forget(some slot.Set) {
	r := m.c.running.Load()
	if r == nil {
		return
	}
	var keys []string
	for _, key := range r.queue.All() {
		if n, ok := r.serving.entryOf(key); ok && some.Has(n) {
			keys = append(keys, key)
		}
	}
	m.c.countDropped(r.queue.Forget(keys))
	called := r.incarnations.Forget(func(key string, uid types.UID) bool {
		namespace, _ := written.SplitKey(key)
		return some.Has(m.Of(uid, namespace))
	})
	for _, key := range append(keys, called...) {
		m.c.barrier.Release(key)
		r.intake.firstWrites.take(key)
		r.terminal.forget(key)
		m.c.panicked.Delete(key)
	}
	for _, key := range called {
		if r.isServed(key) { // by UID: the key has another object, whose slot is served
			r.queue.Add(key, queue.Ask[reason]{Reason: reason{cause: Moved}})
		}
	}
}

// share is the part of a controller in a group: its entries, and its Run, which returns once the
// group was left.
type share struct {
	entries.States
	group   *Slots
	changed broadcast // a run has started, or Run has ended

	mu      sync.Mutex // guards the rest
	inRun   bool       // Run has not returned
	isOver  bool       // the last Run makes no more calls
	failure error      // of that Run
}

// newShare returns the share of a controller that is led as a whole under a number, or
// entries.Divided.
func newShare(group *Slots, whole int) *share {
	return &share{group: group, States: entries.States{Whole: whole, By: group.by}}
}

// run is the body of Run: it calls f with a context that ends when the group was left, and returns
// after that. It returns ErrRunning during another call.
func (s *share) run(ctx context.Context, f func(lasting context.Context) error) error {
	s.mu.Lock()
	inRun := s.inRun
	if !inRun {
		s.inRun, s.isOver, s.failure = true, false, nil
	}
	s.mu.Unlock()
	if inRun {
		return ErrRunning
	}
	err := s.group.stay.outlast(ctx, func(lasting context.Context) error {
		err := f(lasting)
		s.mu.Lock()
		s.isOver, s.failure = true, err
		s.mu.Unlock()
		s.changed.send()
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inRun = false
	return err
}

// state reports whether Run makes calls, and whether it has made its last, with its error.
func (s *share) state() (runs, isOver bool, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inRun && !s.isOver, s.isOver, s.failure
}

func (s *share) entries() *entries.States { return &s.States }

// runnerMember is a Runner of another kind than a Controller, which a group leads as a whole. It
// runs while its entry is served and not shut: what it does in a run is not known, so that the run
// counts as a call.
type runnerMember struct {
	Runner
	*share
}

// RunTerm runs the Runner whenever the group gives it to this process, until ctx ends and the group
// was left.
func (m *runnerMember) RunTerm(ctx context.Context, _ Term) error {
	return m.run(ctx, func(lasting context.Context) (err error) {
		for err == nil && lasting.Err() == nil {
			changed := m.changed.wait()
			term := m.group.stay.current()
			c := &entries.Call{Entry: m.Whole, Began: time.Now()}
			c.Context, c.Abort = context.WithCancelCause(lasting)
			if begun, _ := m.Begin("", c); !begun || term.Err() != nil {
				m.End(c)
				select {
				case <-changed:
				case <-lasting.Done():
				}
				continue
			}
			m.Note(c.Entry, nil)
			if err = m.Runner.RunTerm(c.Context, term); errors.Is(err, ErrCallsRunning) {
				break // the call has not ended, so that nobody else runs it
			}
			switch {
			case c.Context.Err() != nil || hasEndedWith(term, err):
				err = nil // its entry was taken or shut, or the term is over
			case err == nil:
				pause(lasting) // it ended by itself
			}
			m.End(c)
		}
		return err
	})
}

func (m *runnerMember) setDefaultTerm(Term) {}

func (m *runnerMember) prolong() {}

func (m *runnerMember) warm(context.Context, Term) error { return nil }

func (m *runnerMember) forget(slot.Set) {}

func (m *runnerMember) serve(owned []slot.Owned) { m.settle(m.Serve(owned)) }

// settle runs or stops the Runner, which waits for no versions.
func (m *runnerMember) settle([]string) {
	for _, w := range m.Expect() {
		m.Know(w)
		m.Reach(w, w.Entries)
	}
	if _, opened, shut := m.Sets(); opened.Minus(shut).IsEmpty() {
		m.Abort(m.All(), nil)
	}
	m.changed.send()
}

func (m *runnerMember) shown(int, bool) (versions map[string]string, ok bool) { return nil, true }

func (m *runnerMember) report(w *work) {
	runs, isOver, _ := m.state()
	w.runs(m.Name(), runs, isOver)
	if calls, _ := m.Calls(m.Whole); calls.Running == 0 {
		w.because(m.All(), "controller %q does not run", m.Name())
	}
}
