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
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(lasting, leaveGrace)
		defer cancel()
		c.o.Slots.awaitTaken(bounded)
		stop()
	})()
	var err error
	for last := Term(nil); err == nil; {
		term := c.o.Slots.next(lasting, last)
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
	c.slots.changed.send()
	return err
}

// current returns the present run, nil without one.
func (c *Controller[T]) current() *run[T] {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.running
}

func (c *Controller[T]) setDefaultTerm(t Term) { c.o.Guard.SetDefaultTerm(t) }

// warm waits until the run of a term has started.
func (c *Controller[T]) warm(ctx context.Context, t Term) error {
	for {
		changed := c.slots.changed.wait()
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
	c.slots.noteUnknown(owned)
	if r := c.current(); r != nil {
		r.serve(owned)
	}
}

func (c *Controller[T]) pause(slots slot.Set) (known bool) { return c.slots.close(slots) }

// drain waits until no call for slots runs, and the caches show the writes of such calls. It
// returns the newest versions by resource and selection. If the term is closed, it waits for the
// calls alone.
func (c *Controller[T]) drain(ctx context.Context, t Term, slots slot.Set) (map[string]string, error) {
	if !c.slots.awaitIdle(ctx, slots) {
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
	c.slots.close(slots)
	if r := c.current(); r != nil {
		r.drop(slots)
	}
}

// report adds the calls since the last report, and returns the slots that are in order.
func (c *Controller[T]) report(made *[slot.Count]float64) (inOrder slot.Set) {
	open := c.slots.report(made)
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
	if namespace == "" || c.o.Slots.by == ByUID {
		return slot.All()
	}
	slots.Add(ByNamespace.Of("", namespace))
	return slots
}

// isInOrder is the counterpart of report for a controller that is led as a whole: it reports
// whether the controller is in order.
func (c *Controller[T]) isInOrder() bool {
	r := c.current()
	return r != nil && r.hasStarted() && !r.isTermOver() && len(r.cutOff()) == 0 &&
		len(r.queue.Late(lateAfter)) == 0
}

// awaitSync waits until the informers that calls need are synced.
func (c *Controller[T]) awaitSync(ctx context.Context) error {
	for _, f := range c.all() {
		if f.optional {
			continue
		}
		if err := f.awaitSync(ctx); err != nil {
			return err
		}
	}
	return nil
}

// isIdle returns an error that wraps ErrCallsRunning if a call runs, also one of an earlier run.
func (c *Controller[T]) isIdle() (err error) {
	c.callings.Range(func(key, _ any) bool {
		err = fmt.Errorf("controller %q: %w: %v", c.o.Name, ErrCallsRunning, key)
		return false
	})
	return err
}

// slotOf returns the slot of the object of the next call of a key. By UID, this is the object that
// calls of the run were made for, or else the cached one. ok is false without either.
func (c *Controller[T]) slotOf(r *run[T], key string) (n int, ok bool) {
	by := c.o.Slots.by
	if by == ByNamespace {
		namespace, _ := written.SplitKey(key)
		return by.Of("", namespace), true
	}
	if r != nil {
		if uid, called := r.lives.uid(key); called {
			return by.Of(string(uid), ""), true
		}
	}
	_, uid, ok := c.all()[0].Cached(key)
	return by.Of(uid, ""), ok
}

// isServed reports whether changes of a key lead to a call.
func (r *run[T]) isServed(key string) bool {
	if r.c.slots == nil {
		return true
	}
	n, ok := r.c.slotOf(r, key)
	return ok && r.c.slots.isOpen(n)
}

// serve begins to serve slots, if the run has started and does not end.
func (r *run[T]) serve(owned []slot.Owned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started || r.ending {
		return
	}
	for _, w := range r.c.slots.expect(owned) {
		r.goes("opener", func() { r.open(w) })
	}
}

// open waits until the caches have reached the versions of slots, or the server says that they cannot, and
// calls each of their keys once. Caches that are behind hold up the slots that need them.
func (r *run[T]) open(w *opening) {
	versions, known, behind := r.reach(w.versions, w.versions != nil)
	if w.versions == nil {
		behind = nil // after a crash it is not known whether anything was written
		if known {
			for n := range w.slots.Slots() {
				r.barrier.reached(n, versions) // the next owner has to reach them too
			}
			r.c.slots.know(w.slots)
		}
	}
	lagging := lagging[T]{behind: behind}
	for r.ctx.Err() == nil {
		lagging.update(r)
		held := slot.Set{}
		for _, u := range lagging.behind {
			held = held.Union(r.c.slotsOf(r.c.neededBy(u.follower, u.namespace)))
		}
		r.callMoved(r.c.slots.opened(w, w.slots.Minus(held)))
		if !r.c.slots.isOpening(w) || !pause(r.ctx) {
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
	return n, ok && r.c.slots.begin(n)
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

// isIn reports whether an object is in a slot; always without Options.Slots.
func (r *run[T]) isIn(n int, object T) bool {
	s := r.c.o.Slots
	return s == nil || s.by.Of(string(object.GetUID()), object.GetNamespace()) == n
}

// countLoad counts a call for its slot, if something else has led to it than the move of the slot and
// the echo of own writes.
func (r *run[T]) countLoad(n int, whys []queue.Counted[why]) {
	asked := func(w queue.Counted[why]) bool { return w.Reason.cause != Moved && !w.Reason.own }
	if r.c.slots != nil && slices.ContainsFunc(whys, asked) {
		r.c.slots.count(n)
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
	by := r.c.o.Slots.by
	called := r.lives.forget(func(key string, uid types.UID) bool {
		namespace, _ := written.SplitKey(key)
		return slots.Has(by.Of(string(uid), namespace))
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
