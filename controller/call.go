package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/incarnation"
	"github.com/tidings-go/tidings/controller/internal/queue"
)

var (
	// errGoexit is the error of a call that has ended its goroutine.
	errGoexit = errors.New("the function called runtime.Goexit")
	// errTimeout is the cause with which a call's context ends after Options.Timeout.
	errTimeout = fmt.Errorf("the call took longer than Options.Timeout: %w", context.DeadlineExceeded)
)

// calling is a key that is with a worker. It keeps the changes that lead to another call until
// the call has ended: only then is it known which of them the call itself made.
type calling struct {
	run          any // that of the worker
	entries.Call     // Entry is that of the object, or barrier.NoSlot; the rest is for a group

	mu      sync.Mutex // guards the rest
	changes []change
	over    bool

	// For the worker: the lag of the call, and whether only own writes have led to it.
	lag   time.Duration
	loops bool
}

// maxChanges bounds the changes that are kept. With more of them, some own writes may not be
// recognised.
const maxChanges = 32

// keep takes a change of a run. It reports false if it is not that of the worker, if the call is
// over, or if there are too many.
func (c *calling) keep(run any, ch change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.run != run || c.over || len(c.changes) > maxChanges {
		return false
	}
	c.changes = append(c.changes, ch)
	return true
}

// end ends the call, and returns the changes that have come. record takes the writes of the call: a
// change that keep refuses because the call is over finds them recorded.
func (c *calling) end(record func(came []*barrier.Event)) (changes []change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	changes, c.changes, c.over = c.changes, nil, true
	came := make([]*barrier.Event, len(changes))
	for i := range changes {
		came[i] = &changes[i].Event
	}
	record(came)
	return changes
}

// work calls the function for one key after the other.
func (r *run[T]) work(n int) {
	pprof.SetGoroutineLabels(r.calls)
	var reasons []queue.Counted[why]
	for {
		item, ok := r.queue.Get(n, reasons[:0])
		switch {
		case ok:
			r.c.waits.Observe(item.Waited)
			reasons = item.Reasons
			r.step(n, item)
		case r.leaves(n):
			return
		}
	}
}

// step handles an item. If the function ends the goroutine, another one goes on in its place.
func (r *run[T]) step(n int, item queue.Item[why]) {
	outcome := queue.Outcome{Result: queue.Retry}
	returned := false
	defer func() {
		if err := r.queue.Done(item, outcome); err != nil {
			r.c.o.Logger.Error("the queue is out of step", "key", item.Key, "error", err)
		}
		if !returned {
			r.callGroup.Go(func() { r.work(n) })
		}
	}()
	outcome = r.process(item)
	returned = true
}

// process makes a call, if it may begin.
func (r *run[T]) process(item queue.Item[why]) queue.Outcome {
	current := &calling{run: r, Call: entries.Call{Context: r.calls, Entry: barrier.NoSlot}}
	if _, running := r.c.callings.LoadOrStore(item.Key, current); running {
		return queue.Outcome{Result: queue.Park} // a call of an earlier run has not returned yet
	}
	defer func() {
		r.addAll(item.Key, current.end(func([]*barrier.Event) {}))
		r.c.callings.Delete(item.Key)
		if r.ctx.Err() != nil {
			r.c.wake(item.Key)
		}
	}()
	if r.ctx.Err() != nil || r.gate.IsClosed(item.Key) || r.isTermOver() {
		return queue.Outcome{Result: queue.Park}
	}
	if t := r.c.slots.Load(); t != nil {
		if begun, otherwise := r.enter(item.Key, current); !begun {
			return otherwise
		}
		defer t.End(&current.Call)
	}
	parked, unshown := r.barrier.Hold(item.Key)
	if parked {
		return queue.Outcome{Result: queue.Park}
	}
	return r.processObject(item, unshown, current)
}

// processObject finds the object that a call is for, and makes the call.
func (r *run[T]) processObject(item queue.Item[why], unshown bool, current *calling) queue.Outcome {
	lister := r.c.primary.Lister()
	object, next := r.incarnations.Begin(item.Key, func() (T, bool) {
		lister = lister.Frozen()
		object, err := lister.Get(item.Key)
		return object, err == nil && r.isIn(current.Entry, object)
	})
	request := Request[T]{
		Key: item.Key, Object: object, Failures: item.Failures, Waited: item.Waited,
		Gone: next == incarnation.Ended, Unshown: unshown, MoreReasons: item.MoreReasons,
	}
	switch next {
	case incarnation.Nothing:
		r.writes.take(item.Key)
		r.c.succeeded.send()
		return queue.Outcome{}
	case incarnation.EndPending:
		return queue.Outcome{Result: queue.Park}
	case incarnation.Ended:
		left, err := r.hasLeft(current.Context, object)
		if err != nil {
			return r.outcome(item, Result{}, err)
		}
		request.Left = left
	}
	request.Reasons = r.reasons(item.Reasons)
	if current.loops = isLoop(request); current.loops {
		r.c.count(func(h *Health) { h.Loops++ })
	}
	current.lag = r.lagOf(item.Key, item.Failures)
	return r.call(item, request, lister, current)
}

// isTermOver reports whether the term is closed. The run may not have ended with it yet: the
// process may have stood still.
func (r *run[T]) isTermOver() bool { return r.term != nil && r.term.Err() != nil }

// isLoop reports whether only writes of this controller have led to a call.
func isLoop[T tidings.Object](r Request[T]) bool {
	foreign := func(reason Reason) bool { return !reason.Own }
	return len(r.Reasons) > 0 && r.MoreReasons == 0 && !slices.ContainsFunc(r.Reasons, foreign)
}

// reasons returns the reasons of an item as the function receives them.
func (r *run[T]) reasons(whys []queue.Counted[why]) []Reason {
	reasons := make([]Reason, len(whys))
	followers := r.c.informers.All()
	for i, w := range whys {
		reasons[i] = Reason{
			Cause: w.Reason.cause, Object: w.Reason.key, Own: w.Reason.own, Count: w.Count,
		}
		reasons[i].Manager = textOf(w.Reason.manager)
		if w.Reason.key == "" {
			continue
		}
		for _, f := range followers {
			if f.Number == w.Reason.informer {
				reasons[i].Informer = f.Name()
			}
		}
	}
	return reasons
}

// call makes a call.
func (r *run[T]) call(
	item queue.Item[why], request Request[T], primary tidings.Lister[T], current *calling,
) (outcome queue.Outcome) {
	t := r.c.slots.Load()
	if t != nil {
		t.Note(current.Entry, nil)
	}
	ctx, endSpan := r.startSpan(current.Context, request)
	cancel := context.CancelFunc(func() {})
	if d := r.c.o.Timeout; d > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, d, errTimeout)
	}
	ctx = context.WithValue(ctx, readsKey{}, &reads{
		primary: r.c.primary, lister: primary, follows: r.c.informers.Has,
	})
	var guarded *guard.Call
	if g := r.c.o.Guard; g != nil {
		ctx, guarded = g.Begin(ctx, r.term)
		guarded.Name = r.c.o.Name + " " + item.Key
	}
	began := time.Now()
	var result Result
	err := errGoexit
	defer func() { // also if the function ends the goroutine
		if context.Cause(ctx) == errTimeout {
			r.c.count(func(h *Health) { h.Timeouts++ })
		}
		cancel()
		endSpan(result, err)
		took := time.Since(began)
		r.c.durations.Observe(took)
		r.c.count(func(h *Health) {
			h.Calls++
			h.LongestCall.Duration = max(h.LongestCall.Duration, took)
		})
		r.c.calls.add(callOf(request, began, took, current.lag, result, err))
		var writes []guard.Write
		if guarded != nil {
			writes = guarded.End()
		}
		if t != nil {
			t.Note(current.Entry, writes)
		}
		r.fights.CallEnded(item.Key, began, current.loops, writes)
		r.addAll(item.Key, current.end(func(came []*barrier.Event) {
			r.barrier.Record(item.Key, current.Entry, writes, came, r.c.informers.All)
		}))
		outcome = r.outcome(item, result, err)
		switch {
		case err == nil:
			r.succeeded(request, result)
		case request.Gone && isTerminal(err):
			r.endLife(request.Key) // no change of the object can come
		}
	}()
	result, err = r.invoke(ctx, request)
	return outcome
}

// succeeded records a call without an error.
func (r *run[T]) succeeded(request Request[T], result Result) {
	r.c.panicked.Delete(request.Key)
	switch {
	case !request.Gone:
		r.incarnations.Succeeded(request.Key, request.Object.GetResourceVersion())
	case result.RequeueAfter == 0:
		r.endLife(request.Key)
	}
	r.c.succeeded.send()
}

// endLife ends the life of an object that is gone. Another one of its key has its first call then.
func (r *run[T]) endLife(key string) {
	r.incarnations.End(key)
	_, err := r.c.primary.Lister().Get(key)
	if err == nil && r.isServed(key) {
		r.queue.Add(key, queue.Ask[why]{Reason: why{cause: Added}})
	}
}

// maxFrames is the number of frames by which stacks are compared.
const maxFrames = 32

// invoke calls the function. A panic is an error. Its stack is logged if the last panic of the key
// had another one.
func (r *run[T]) invoke(ctx context.Context, request Request[T]) (result Result, err error) {
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		r.c.count(func(h *Health) { h.Panics++ })
		stack := string(debug.Stack())
		if r.c.o.CrashOnPanic {
			panic(fmt.Sprintf("controller %q: the call of %q panicked: %v\n%s",
				r.c.o.Name, request.Key, value, stack))
		}
		var at [maxFrames]uintptr
		runtime.Callers(1, at[:])
		if last, _ := r.c.panicked.Swap(request.Key, at); last != at {
			r.c.o.Logger.Error("a call panicked", "key", request.Key, "panic", fmt.Sprint(value),
				"stack", stack)
		}
		err = fmt.Errorf("the call panicked: %v", value)
	}()
	return r.c.reconcile(ctx, request)
}

// outcome returns the queue's outcome for the result and the error of a call.
func (r *run[T]) outcome(item queue.Item[why], result Result, err error) queue.Outcome {
	if err == nil {
		r.c.count(func(h *Health) {
			if result.RequeueAfter > 0 {
				h.Requeues++
			} else {
				h.Succeeded++
			}
		})
		return queue.Outcome{After: max(result.RequeueAfter, 0)}
	}
	r.c.count(func(h *Health) {
		h.Errors++
		h.LastError, h.LastErrorOf, h.LastErrorAt = err.Error(), item.Key, time.Now()
	})
	attrs := []any{"key", item.Key, "failures", item.Failures + 1, "error", err}
	switch {
	case isTerminal(err):
		r.c.count(func(h *Health) { h.Terminal++ })
		if more, ok := r.c.terminals.Allow(); ok {
			r.c.o.Logger.Error("a call failed, and waits for a change", append(attrs, more...)...)
		}
		return queue.Outcome{Result: queue.Fail}
	case apierrors.IsConflict(err) || r.calls.Err() != nil:
		r.c.o.Logger.Debug("a call is tried again", attrs...)
	default:
		if more, ok := r.c.retries.Allow(); ok {
			r.c.o.Logger.Warn("a call failed, and is tried again", append(attrs, more...)...)
		}
	}
	r.c.count(func(h *Health) { h.Retries++ })
	return retryOf(err)
}

// hasLeft reports whether an object that the informer deleted still exists: it has left the
// selection, or its namespace is no longer one of the informer's.
func (r *run[T]) hasLeft(ctx context.Context, last metav1.Object) (bool, error) {
	primary := r.c.informers.Primary()
	if _, held := primary.Reached(last.GetNamespace()); !held {
		return true, nil
	}
	if !primary.Selects() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, barrier.AskAfter)
	defer cancel()
	return r.c.o.Guard.Exists(ctx, primary.GVR(), last)
}
