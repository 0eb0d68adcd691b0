package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/gate"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/lead/written"
)

// errTerm is the error of a run under the term of an election.
var errTerm = errors.New("a controller with Options.Slots has the terms of its group: " +
	"run it without an election, on each replica")

func (c *Controller[T]) hasSlots() bool { return c.o.Slots != nil }

func (c *Controller[T]) share() *share { return c.slots.Load() }

// lead makes a group lead the controller as a whole, as an entry with a number.
func (c *Controller[T]) lead(group *Slots, number int) {
	c.slots.Store(newShare(group, number))
}

// isStandby reports whether another process is to lead the controller.
func (c *Controller[T]) isStandby() bool {
	t := c.share()
	return t != nil && t.Whole != entries.Divided && !t.IsOpen(t.Whole)
}

// leaveSlots is called for a controller that is not to run: slots are served without it.
func (c *Controller[T]) leaveSlots() {
	if c.o.Slots != nil {
		c.o.Slots.remove(c)
	}
}

// runSlots has one run for each membership of the group, until ctx ends and the group was left.
func (c *Controller[T]) runSlots(ctx context.Context) error {
	t := c.share()
	return t.run(ctx, func(lasting context.Context) (err error) {
		for last := Term(nil); err == nil; {
			term := t.group.next(lasting, last)
			if term == nil {
				break
			}
			err = c.runTerm(lasting, term)
			if last = term; term.Err() != nil && !errors.Is(err, ErrCallsRunning) {
				err = nil // it ended with the term
			}
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.last = err
		return err
	})
}

// prolong makes the informers go on until the group was left, if there is one.
func (c *Controller[T]) prolong() {
	for _, f := range c.informers.All() {
		c.share().group.prolong(f)
	}
}

func (c *Controller[T]) setDefaultTerm(t Term) {
	if c.o.Guard != nil { // a controller that is led as a whole may do without
		c.o.Guard.SetDefaultTerm(t)
	}
}

// warm waits until the run of a term has started.
func (c *Controller[T]) warm(ctx context.Context, t Term) error {
	for {
		changed := c.share().changed.wait()
		_, isOver, failure := c.share().state()
		r := c.running.Load()
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

func (c *Controller[T]) serve(owned []slot.Owned) {
	for _, o := range owned {
		c.barrier.Reached(o.Number, o.Versions) // the next owner has to reach them too
	}
	c.settle(c.share().Serve(owned))
}

// settle begins the waits for versions, and queues keys that were parked because their entries were shut. By
// UID, a call for another object of such a key, in another slot, may wait too.
func (c *Controller[T]) settle(parked []string) {
	for _, key := range parked {
		c.barrier.Release(key)
	}
	if r := c.running.Load(); r != nil {
		r.wake(parked)
		r.serve()
	}
}

// shown returns the versions that show all writes to an entry. While the entry is shut, the keys whose writes
// do not show are held: so the server is asked about them when they are due.
func (c *Controller[T]) shown(n int, shut bool) (versions map[string]string, ok bool) {
	keys := c.barrier.Unsettled(slot.Of(n))
	for _, key := range keys {
		if !shut {
			break
		}
		if parked, _ := c.barrier.Hold(key); parked {
			c.share().Park(n, key)
		} else {
			c.wake(key)
		}
	}
	return c.barrier.Written(slot.Of(n)), len(keys) == 0
}

// slotOf returns the entry of the object of the next call of a key. By UID, this is the object that
// calls of the run were made for, or else the cached one. ok is false without either.
func (c *Controller[T]) slotOf(r *run[T], key string) (n int, ok bool) {
	namespace, _ := written.SplitKey(key)
	t := c.share()
	if t.Whole != entries.Divided || t.By == ByNamespace {
		return t.Of("", namespace), true
	}
	if uid, called := r.incarnations.UID(key); called {
		return t.Of(uid, ""), true
	}
	_, uid, ok := c.informers.Primary().Cached(key)
	return t.Of(types.UID(uid), ""), ok
}

// isServed reports whether changes of a key lead to a call.
func (r *run[T]) isServed(key string) bool {
	t := r.c.share()
	if t == nil {
		return true
	}
	n, ok := r.c.slotOf(r, key)
	return ok && t.IsOpen(n)
}

// serve begins the waits for the versions of entries, if the run has started and does not end.
func (r *run[T]) serve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started || r.ending {
		return
	}
	for _, w := range r.c.share().Expect() {
		r.goes("opener", func() { r.open(w) })
	}
}

// open waits until the caches have reached the versions of entries, or the server says that they cannot, and
// calls each of their keys once. Caches that are behind hold up the entries that need them.
func (r *run[T]) open(w *entries.Wait) {
	t := r.c.share()
	versions, known, behind := r.gate.Reach(w.Versions, w.Versions != nil)
	if w.Versions == nil {
		behind = nil // after a crash it is not known whether anything was written
		if known {
			for n := range w.Entries.Slots() {
				r.barrier.Reached(n, versions) // the next owner has to reach them too
			}
			t.Know(w)
		}
	}
	var waits gate.Waits
	waits.Add(behind...)
	for r.ctx.Err() == nil {
		r.gate.Update(&waits)
		held := slot.Set{}
		for _, u := range waits.All() {
			if u.HoldsUp() {
				held = held.Union(r.c.share().OfNamespace(r.gate.HeldUpBy(u)))
			}
		}
		r.weigh(w.Entries.Minus(held))
		opened, others := t.Reach(w, w.Entries.Minus(held))
		r.callMoved(opened)
		if !others || !pause(r.ctx) {
			r.gate.Waits.Add(waits.All()...) // of optional informers that fail
			return
		}
	}
}

// weigh counts the objects of entries that are about to open, so that their weights are known as soon as they are
// open.
func (r *run[T]) weigh(entries slot.Set) {
	var objects [slot.Entries]int
	for key := range r.c.primary.Lister().All() {
		if n, ok := r.c.slotOf(r, key); ok {
			objects[n]++
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for n := range entries.Slots() {
		r.surveyed.objects[n] = objects[n]
	}
}

// callMoved calls each key of entries that have been opened.
func (r *run[T]) callMoved(opened slot.Set) {
	if opened.IsEmpty() {
		return
	}
	add := func(key string) {
		if n, ok := r.c.slotOf(r, key); ok && opened.Has(n) {
			r.queue.Add(key, queue.Ask[why]{Band: queue.Background, Reason: why{cause: Moved}})
			r.queue.Wake(key)
		}
	}
	for key := range r.c.primary.Lister().All() {
		add(key)
	}
	for _, key := range r.incarnations.Gone() { // of entries that are served again
		if _, _, cached := r.c.informers.Primary().Cached(key); !cached {
			add(key)
		}
	}
}

// enter begins a call for a key. Otherwise it returns the outcome.
func (r *run[T]) enter(key string, current *calling) (begun bool, otherwise queue.Outcome) {
	n, ok := r.c.slotOf(r, key)
	if ok {
		var parked bool
		current.Entry, current.Began = n, time.Now()
		current.Context, current.Abort = context.WithCancelCause(r.calls)
		if begun, parked = r.c.share().Begin(key, &current.Call); begun {
			return true, otherwise
		}
		if current.Abort(nil); parked {
			return false, queue.Outcome{Result: queue.Park}
		}
	}
	r.writes.take(key)
	r.c.succeeded.send()
	return false, queue.Outcome{}
}

// isIn reports whether an object is in an entry; always without a group.
func (r *run[T]) isIn(n int, object T) bool {
	t := r.c.share()
	return t == nil || t.Of(object.GetUID(), object.GetNamespace()) == n
}

// forget forgets the keys of entries.
func (c *Controller[T]) forget(entries slot.Set) {
	r := c.running.Load()
	if r == nil {
		return
	}
	var keys []string
	for _, key := range r.queue.All() {
		if n, ok := c.slotOf(r, key); ok && entries.Has(n) {
			keys = append(keys, key)
		}
	}
	dropped := r.queue.Forget(keys)
	c.count(func(h *Health) { h.Added += uint64(dropped) })
	called := r.incarnations.Forget(func(key string, uid types.UID) bool {
		namespace, _ := written.SplitKey(key)
		return entries.Has(c.share().Of(uid, namespace))
	})
	for _, key := range append(keys, called...) {
		r.barrier.Release(key)
		r.writes.take(key)
		c.panicked.Delete(key)
	}
	for _, key := range called {
		if r.isServed(key) { // by UID: the key has another object, whose slot is served
			r.queue.Add(key, queue.Ask[why]{Reason: why{cause: Moved}})
		}
	}
}
