package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/internal/written"
)

// drainPeriod is the period at which a drain checks whether the caches show the writes of its keys,
// and the next owner whether the watch of a namespace has reached a version.
const drainPeriod = 20 * time.Millisecond

// errTerm is the error of a run under the term of an election.
var errTerm = errors.New("a controller with Options.Slots has the terms of its group: " +
	"run it without an election, on each replica")

func (c *Controller[T]) hasSlots() bool { return c.o.Slots != nil }

// has returns the slots that the controller may serve.
func (c *Controller[T]) has() slot.Set {
	if s := c.slots.Load(); s.whole != noSlot {
		return slot.Of(s.whole)
	}
	return slot.All()
}

// lead makes a group lead the controller as a whole, as the slot with a number.
func (c *Controller[T]) lead(group *Slots, number int) {
	c.slots.Store(&slotCalls{group: group, whole: number})
}

// isStandby reports whether another process is to lead the controller.
func (c *Controller[T]) isStandby() bool {
	s := c.slots.Load()
	return s != nil && s.whole != noSlot && !s.isOpen(s.whole)
}

// leaveSlots is called for a controller that is not to run: slots are served without it.
func (c *Controller[T]) leaveSlots() {
	if c.o.Slots != nil {
		c.o.Slots.remove(c)
	}
}

// runSlots has one run for each membership of the group, until ctx ends and the slots are taken.
func (c *Controller[T]) runSlots(ctx context.Context) error {
	c.mu.Lock()
	if c.takesPart {
		c.mu.Unlock()
		return ErrRunning
	}
	c.takesPart, c.last = true, nil
	c.mu.Unlock()
	group := c.slots.Load().group
	lasting, stop := group.lasting(ctx)
	defer stop()
	var err error
	for last := Term(nil); err == nil; {
		term := group.next(lasting, last)
		if term == nil {
			break
		}
		err = c.runTerm(lasting, term)
		if last = term; err != nil && term.Err() != nil && !errors.Is(err, ErrCallsRunning) {
			err = nil // it ended with the term
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.takesPart, c.last = false, err
	c.slots.Load().changed.send()
	return err
}

// current returns the present run, nil without one.
func (c *Controller[T]) current() *run[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *Controller[T]) setDefaultTerm(t Term) {
	if c.o.Guard != nil { // a controller that is led as a whole may do without
		c.o.Guard.SetDefaultTerm(t)
	}
}

// warm waits until the run of a term has started.
func (c *Controller[T]) warm(ctx context.Context, t Term) error {
	for {
		changed := c.slots.Load().changed.wait()
		c.mu.Lock()
		r, ended := c.running, c.last
		if c.takesPart {
			ended = nil // with another term
		}
		c.mu.Unlock()
		switch {
		case r != nil && r.term == t && r.hasStarted():
			return nil
		case ended != nil:
			return fmt.Errorf("it runs no more: %w", ended)
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
		c.barrier.reached(o.Number, o.Versions) // the next owner has to reach them too
	}
	c.slots.Load().noteUnknown(owned)
	if r := c.current(); r != nil {
		r.serve(owned)
	}
}

func (c *Controller[T]) pause(slots slot.Set) (known bool) { return c.slots.Load().close(slots) }

// drain waits until no call for slots runs, and the caches show the writes of such calls. It
// returns the newest versions by resource and selection. If the term is closed, it waits for the
// calls alone.
func (c *Controller[T]) drain(ctx context.Context, t Term, slots slot.Set) (map[string]string, error) {
	if !c.slots.Load().awaitIdle(ctx, slots) {
		return nil, fmt.Errorf("%w: %w", ErrCallsRunning, context.Cause(ctx))
	}
	ticker := time.NewTicker(drainPeriod)
	defer ticker.Stop()
	held := map[string]bool{}
	defer func() {
		for key := range held {
			c.barrier.release(key)
			c.wake(key) // by UID, a call for another object of the key, in another slot, may wait too
		}
	}()
	for t != nil && t.Err() == nil {
		open := 0
		for _, key := range c.barrier.unshown(slots) {
			if parked, _ := c.barrier.hold(key); parked { // and the server is asked when it is due
				held[key] = true
				open++
			} else {
				c.wake(key)
			}
		}
		if open == 0 {
			return c.barrier.written(slots), nil
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("caches do not show what the calls of %d keys have written: %w",
				open, context.Cause(ctx))
		}
	}
	return nil, nil
}

func (c *Controller[T]) drop(slots slot.Set) {
	c.slots.Load().close(slots)
	if r := c.current(); r != nil {
		r.drop(slots)
	}
}

func (c *Controller[T]) takeMade(made *[slot.Count]float64) { c.slots.Load().takeMade(made) }

// inOrder returns the slots that are in order.
func (c *Controller[T]) inOrder() slot.Set {
	open := c.slots.Load().opens()
	r := c.current()
	if r == nil || r.isTermOver() {
		return slot.Set{}
	}
	for _, namespace := range r.cutOff() {
		open = open.Minus(c.slotsOf(namespace))
	}
	for _, key := range r.queue.Late(lateAfter) {
		if n, ok := c.slotOf(r, key); ok {
			open.Remove(n)
		}
	}
	return open
}

// slotsOf returns the slots that may have keys of a namespace, "" being all.
func (c *Controller[T]) slotsOf(namespace string) (slots slot.Set) {
	if s := c.slots.Load(); namespace == "" || s.whole != noSlot || s.group.by == ByUID {
		return c.has()
	}
	slots.Add(ByNamespace.Of("", namespace))
	return slots
}

// slotOf returns the slot of the object of the next call of a key. By UID, this is the object that
// calls of the run were made for, or else the cached one. ok is false without either.
func (c *Controller[T]) slotOf(r *run[T], key string) (n int, ok bool) {
	namespace, _ := written.SplitKey(key)
	s := c.slots.Load()
	if s.whole != noSlot || s.group.by == ByNamespace {
		return s.of("", namespace), true
	}
	if r != nil {
		if uid, called := r.lives.uid(key); called {
			return s.of(uid, ""), true
		}
	}
	_, uid, ok := c.all()[0].Cached(key)
	return s.of(types.UID(uid), ""), ok
}

// isServed reports whether changes of a key lead to a call.
func (r *run[T]) isServed(key string) bool {
	slots := r.c.slots.Load()
	if slots == nil {
		return true
	}
	n, ok := r.c.slotOf(r, key)
	return ok && slots.isOpen(n)
}

// serve begins to serve slots, if the run has started and does not end.
func (r *run[T]) serve(owned []slot.Owned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started || r.ending {
		return
	}
	for _, w := range r.c.slots.Load().expect(owned) {
		r.goes("opener", func() { r.open(w) })
	}
}

// open waits until the caches have reached the versions of slots, or the server says that they cannot, and
// calls each of their keys once. Caches that are behind hold up the slots that need them.
func (r *run[T]) open(w *opening) {
	slots := r.c.slots.Load()
	versions, known, behind := r.reach(w.versions, w.versions != nil)
	if w.versions == nil {
		behind = nil // after a crash it is not known whether anything was written
		if known {
			for n := range w.slots.Slots() {
				r.barrier.reached(n, versions) // the next owner has to reach them too
			}
			slots.know(w.slots)
		}
	}
	waits := &lagging[T]{added: behind}
	for r.ctx.Err() == nil {
		waits.update(r)
		held := slot.Set{}
		for _, u := range waits.all() {
			if u.holdsUp() {
				held = held.Union(r.c.slotsOf(r.c.heldUpBy(u)))
			}
		}
		r.callMoved(slots.opened(w, w.slots.Minus(held)))
		if !slots.isOpening(w) || !pause(r.ctx) {
			r.lagging.add(waits.all()...) // of optional informers that fail
			return
		}
	}
}

// callMoved calls each key of slots that have been opened.
func (r *run[T]) callMoved(slots slot.Set) {
	if slots.IsEmpty() {
		return
	}
	add := func(key string) {
		if n, ok := r.c.slotOf(r, key); ok && slots.Has(n) {
			r.queue.Add(key, queue.Ask[why]{Band: queue.Background, Reason: why{cause: Moved}})
			r.queue.Wake(key)
		}
	}
	for key := range r.c.primary.Lister().All() {
		add(key)
	}
	for _, key := range r.lives.gone() { // of slots that were paused
		if _, _, cached := r.c.all()[0].Cached(key); !cached {
			add(key)
		}
	}
}

// enter begins a call for a key, and returns its slot. It reports false if the key is not served.
func (r *run[T]) enter(key string) (n int, ok bool) {
	n, ok = r.c.slotOf(r, key)
	return n, ok && r.c.slots.Load().begin(n)
}

// leaveOut parks a key whose slot is closed, if calls were made for it: the slot may be served again.
func (r *run[T]) leaveOut(key string) queue.Outcome {
	if _, called := r.lives.reconciled(key); called {
		return queue.Outcome{Result: queue.Park}
	}
	r.writes.take(key)
	r.c.succeeded.send()
	return queue.Outcome{}
}

// isIn reports whether an object is in a slot; always without a group.
func (r *run[T]) isIn(n int, object T) bool {
	s := r.c.slots.Load()
	return s == nil || s.of(object.GetUID(), object.GetNamespace()) == n
}

// countLoad counts a call for its slot, if something else has led to it than the move of the slot and
// the echo of own writes.
func (r *run[T]) countLoad(n int, whys []queue.Counted[why]) {
	asked := func(w queue.Counted[why]) bool { return w.Reason.cause != Moved && !w.Reason.own }
	if slots := r.c.slots.Load(); slots != nil && slices.ContainsFunc(whys, asked) {
		slots.count(n)
	}
}

// drop forgets the keys of slots.
func (r *run[T]) drop(slots slot.Set) {
	var keys []string
	for _, key := range r.queue.All() {
		if n, ok := r.c.slotOf(r, key); ok && slots.Has(n) {
			keys = append(keys, key)
		}
	}
	dropped := r.queue.Forget(keys)
	r.c.count(func(h *Health) { h.Added += uint64(dropped) })
	called := r.lives.forget(func(key string, uid types.UID) bool {
		namespace, _ := written.SplitKey(key)
		return slots.Has(r.c.slots.Load().of(uid, namespace))
	})
	for _, key := range append(keys, called...) {
		r.barrier.release(key) // a drain has parked it until its writes show
		r.writes.take(key)
		r.c.panicked.Delete(key)
	}
	for _, key := range called {
		if r.isServed(key) { // by UID: the key has another object, whose slot is served
			r.queue.Add(key, queue.Ask[why]{Reason: why{cause: Moved}})
		}
	}
}
