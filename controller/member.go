package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// member is a controller with Options.Slots, or one that is led as a whole, as its group sees it.
type member interface {
	Name() string
	ofGroup() *share
	setDefaultTerm(t Term)
	prolong()                               // its informers
	warm(ctx context.Context, t Term) error // until it can serve
	serve(owned []slot.Owned)
	settle(parked []string)  // when its entries have changed, which has returned keys that were parked
	forget(entries slot.Set) // their keys
	// shown returns the versions at which its caches show all writes to an entry. ok is false before.
	shown(entry int, shut bool) (versions map[string]string, ok bool)
	work(w *work)
}

// managed is a [Controller] of any type, as managers and groups see it. A Runner of another kind has no
// more than its public methods.
type managed interface {
	stopsWithin() time.Duration // the longest that RunTerm takes to return once its context has ended
	hasSlots() bool             // it has Options.Slots
	leaveSlots()                // slots are served without it, as it is not to run
	// lead makes a group lead it as a whole, as an entry with a number.
	lead(group *Slots, number int) member
}

// controllerMember is a controller as a member of a group.
type controllerMember[T tidings.Object] struct {
	*share
	c *Controller[T]
}

func (m *controllerMember[T]) Name() string { return m.c.Name() }

// isStandby reports whether another process is to lead the controller.
func (m *controllerMember[T]) isStandby() bool {
	return m != nil && m.Whole != entries.Divided && !m.IsOpen(m.Whole)
}

// runMemberships has one run for each membership of the group, until ctx ends and the group was left.
func (m *controllerMember[T]) runMemberships(ctx context.Context) error {
	return m.run(ctx, func(lasting context.Context) (err error) {
		for last := Term(nil); err == nil; {
			term := m.group.next(lasting, last)
			if term == nil {
				break
			}
			err = m.c.runTerm(lasting, term)
			if last = term; term.Err() != nil && !errors.Is(err, ErrCallsRunning) {
				err = nil // it ended with the term
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
		m.group.prolong(f)
	}
}

func (m *controllerMember[T]) setDefaultTerm(t Term) {
	if m.c.o.Guard != nil { // a controller that is led as a whole may do without
		m.c.o.Guard.SetDefaultTerm(t)
	}
}

// warm waits until the run of a term has started.
func (m *controllerMember[T]) warm(ctx context.Context, t Term) error {
	for {
		changed := m.changed.wait()
		_, isOver, failure := m.state()
		r := m.c.running.Load()
		switch {
		case r != nil && r.term == t && r.hasStarted():
			return nil
		case isOver && failure != nil:
			return fmt.Errorf("it runs no more: %w", failure)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (m *controllerMember[T]) serve(owned []slot.Owned) {
	for _, o := range owned {
		m.c.barrier.Reached(o.Number, o.Versions) // the next owner has to reach them too
	}
	m.settle(m.Serve(owned))
}

// settle begins the waits for versions, and queues keys that were parked because their entries were shut. By
// UID, a call for another object of such a key, in another slot, may wait too.
func (m *controllerMember[T]) settle(parked []string) {
	for _, key := range parked {
		m.c.barrier.Release(key)
	}
	if r := m.c.running.Load(); r != nil {
		r.wake(parked)
		r.serve()
	}
}

// shown returns the versions that show all writes to an entry. While the entry is shut, the keys whose writes
// do not show are held: so the server is asked about them when they are due.
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
		if n, ok := r.slots.entryOf(key); ok && some.Has(n) {
			keys = append(keys, key)
		}
	}
	dropped := r.queue.Forget(keys)
	m.c.count(func(h *Health) { h.Added += uint64(dropped) })
	called := r.incarnations.Forget(func(key string, uid types.UID) bool {
		namespace, _ := written.SplitKey(key)
		return some.Has(m.Of(uid, namespace))
	})
	for _, key := range append(keys, called...) {
		m.c.barrier.Release(key)
		r.intake.writes.take(key)
		m.c.panicked.Delete(key)
	}
	for _, key := range called {
		if r.isServed(key) { // by UID: the key has another object, whose slot is served
			r.queue.Add(key, queue.Ask[why]{Reason: why{cause: Moved}})
		}
	}
}
