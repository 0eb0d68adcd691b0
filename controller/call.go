package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/controller/internal/incarnation"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/lead/written"
	"github.com/tidings-go/tidings/source"
)

var (
	// errGoexit is the error of a call that has ended its goroutine.
	errGoexit = errors.New("the function called runtime.Goexit")
	// errTimeout is the cause with which a call's context ends after Options.Timeout.
	errTimeout = fmt.Errorf("the call took longer than Options.Timeout: %w", context.DeadlineExceeded)
)

// call is the call of the function for a key that is with a worker: begin, make, conclude.
type call[T tidings.Object] struct {
	r            *run[T]
	item         queue.Item[reason]
	entries.Call // Entry is the slot, or barrier.NoSlot; a group needs the rest
	inbox

	request Request[T]
	lines   callLines
	logger  *slog.Logger      // of the lines about the call
	lister  tidings.Lister[T] // the state of the primary that the call reads
	loops   bool              // only own writes have led to it
	lag     time.Duration     // as Call.Lag

	began   time.Time           // of the function; Call.Began is the time of enter
	ctx     context.Context     // of the function
	end     context.CancelFunc  // of ctx; nil without Options.Timeout
	endSpan func(Result, error) // nil without a tracer
	guarded *guard.Call         // nil without a guard
	result  Result
	err     error
}

// handle makes the call of a key that a worker has taken, if it may begin: begin, make, conclude
// and release, in this order. If the function ends the goroutine, conclude and release still run,
// and the queue gets the outcome of workers.step.
func (r *run[T]) handle(item queue.Item[reason]) (outcome queue.Outcome) {
	c := &call[T]{r: r, item: item, err: errGoexit}
	c.Entry, c.Context = barrier.NoSlot, r.callsCtx
	if _, running := r.c.inCall.LoadOrStore(item.Key, c); running {
		return queue.Outcome{Result: queue.Park} // a call of an earlier run has not returned yet
	}
	defer c.release()
	outcome, begun := c.begin()
	if begun {
		defer func() { outcome = c.conclude() }() // also if the function ends the goroutine
		c.make()
	}
	return outcome
}

// begin finds out whether the call may begin, and for which object. Otherwise it returns the
// outcome.
func (c *call[T]) begin() (outcome queue.Outcome, begun bool) {
	r, key := c.r, c.item.Key
	if r.ctx.Err() != nil || r.gate.IsClosed(key) || r.isTermOver() {
		return queue.Outcome{Result: queue.Park}, false
	}
	if r.serving != nil {
		if begun, otherwise := r.serving.enter(key, &c.Call); !begun {
			return otherwise, false
		}
	}
	parked, unshown := r.barrier.Hold(key)
	if parked {
		return queue.Outcome{Result: queue.Park}, false
	}
	object, next := r.incarnations.Begin(key, func() (T, bool) {
		c.lister = r.c.primary.Lister().Frozen()
		object, err := c.lister.Get(key)
		return object, err == nil && (r.serving == nil || r.serving.isIn(c.Entry, object))
	})
	c.request = Request[T]{
		Key: key, Failures: c.item.Failures, Waited: c.item.Waited, Unshown: unshown,
		MoreReasons: c.item.MoreReasons,
	}
	switch next {
	case incarnation.Nothing:
		r.intake.firstWrites.take(key)
		r.c.succeeded.send()
		return queue.Outcome{}, false
	case incarnation.EndPending:
		return queue.Outcome{Result: queue.Park}, false
	}
	c.lines = callLines{r.c.o.Logger.Handler(), key, r.c.callLog.begun.Add(1)}
	c.logger = slog.New(&c.lines)
	if next == incarnation.Ended {
		left, err := c.hasLeft(object)
		if err != nil {
			c.err = err
			return c.countOutcome(), false
		}
		c.request.Gone, c.request.Last, c.request.Left = true, object, left
	} else {
		c.request.Object = object
	}
	c.request.Reasons = c.reasons()
	if c.loops = isLoop(c.request); c.loops {
		r.c.count(func(h *Health) { h.Loops++ })
	}
	c.lag = c.measureLag()
	return outcome, true
}

// hasLeft reports whether an object that the informer deleted still exists: it has left the
// selection, or its namespace is no longer one of the informer's.
func (c *call[T]) hasLeft(last tidings.Object) (bool, error) {
	primary := c.r.c.informers.Primary()
	if _, held := primary.Reached(last.GetNamespace()); !held {
		return true, nil
	}
	if !primary.Selects() {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(c.Context, written.AskTimeout)
	defer cancel()
	return c.r.c.o.Guard.Exists(ctx, primary.GVR(), last)
}

// isLoop reports whether only writes of this controller have led to a call.
func isLoop[T tidings.Object](r Request[T]) bool {
	foreign := func(reason Reason) bool { return !reason.Own }
	return len(r.Reasons) > 0 && r.MoreReasons == 0 && !slices.ContainsFunc(r.Reasons, foreign)
}

// measureLag returns the time from the sending of the first own write that has led to the call
// until now, when it begins. It is 0 without such a write. The delay after an error is no lag.
func (c *call[T]) measureLag() time.Duration {
	sent, ok := c.r.intake.firstWrites.take(c.item.Key)
	if !ok || c.item.Failures > 0 {
		return 0
	}
	lag := max(c.r.barrier.Now()-sent, 0)
	c.r.c.callLag.Observe(lag)
	return lag
}

// make calls the function.
func (c *call[T]) make() {
	r := c.r
	if r.serving != nil {
		r.serving.Note(c.Entry, nil)
	}
	c.ctx, c.endSpan = c.startSpan()
	c.ctx = logr.NewContextWithSlogLogger(c.ctx, c.logger)
	if d := r.c.o.Timeout; d > 0 {
		c.ctx, c.end = context.WithTimeoutCause(c.ctx, d, errTimeout)
	}
	c.ctx = context.WithValue(c.ctx, readsKey{}, &reads{
		primary: r.c.primary, lister: c.lister, follows: r.c.informers.Has,
	})
	if g := r.c.o.Guard; g != nil {
		c.ctx, c.guarded = g.Begin(c.ctx, r.term)
		c.guarded.Name = r.c.o.Name + " " + c.item.Key
	}
	c.began = time.Now()
	c.result, c.err = c.invoke()
}

// maxFrames is the number of frames by which stacks are compared.
const maxFrames = 32

// invoke calls the function. A panic is an error. Its stack is logged if the last panic of the key
// had another one.
func (c *call[T]) invoke() (result Result, err error) {
	of := c.r.c
	defer func() {
		value := recover()
		if value == nil {
			return
		}
		of.count(func(h *Health) { h.Panics++ })
		stack := string(debug.Stack())
		if of.o.CrashOnPanic {
			panic(fmt.Sprintf("controller %q: the call of %q panicked: %v\n%s",
				of.o.Name, c.item.Key, value, stack))
		}
		var at [maxFrames]uintptr
		runtime.Callers(1, at[:])
		if last, _ := of.panicked.Swap(c.item.Key, at); last != at {
			c.logger.Error("a call panicked", "panic", fmt.Sprint(value), "stack", stack)
		}
		err = fmt.Errorf("the call panicked: %v", value)
	}()
	return of.reconcile(c.ctx, c.request)
}

// conclude has the effects of a call that has ended, in this order:
//
//  1. Its context and its span end, and it is measured and listed.
//  2. The guard ends it: its writes are complete. Those without an answer are noted for its entry,
//     which is not given away before they are.
//  3. Its writes are searched for fights, and given to the barrier, which finds the events that
//     they made among those of the inbox. Events that come from now on find the writes in the
//     barrier.
//  4. The changes of the inbox are queued, before the worker is done with the key: they lead to
//     another call.
//  5. Its result is counted, and an error is logged.
//  6. The object is reconciled, or forgotten after its end, which may queue a later object of the
//     key.
func (c *call[T]) conclude() queue.Outcome {
	r, key := c.r, c.item.Key
	if context.Cause(c.ctx) == errTimeout {
		r.c.count(func(h *Health) { h.Timeouts++ })
	}
	if c.end != nil {
		c.end()
	}
	if c.endSpan != nil {
		c.endSpan(c.result, c.err)
	}
	c.measure(time.Since(c.began))

	var writes []guard.Write
	if c.guarded != nil {
		writes = c.guarded.End()
	}
	if r.serving != nil {
		r.serving.Note(c.Entry, writes)
	}

	r.fights.CallEnded(key, c.began, c.loops, writes)
	changes := c.close(func(came []*barrier.Event) {
		r.barrier.Record(key, c.Entry, writes, came, r.c.informers.All)
	}, len(writes) > 0)
	for i := range changes {
		r.intake.add(key, &changes[i])
	}

	outcome := c.countOutcome()
	switch {
	case c.err == nil:
		c.succeed()
	case c.request.Gone && isTerminal(c.err):
		c.endIncarnation() // no change of the object can come
	}
	return outcome
}

// measure counts and lists the call.
func (c *call[T]) measure(took time.Duration) {
	c.r.c.durations.Observe(took)
	c.r.c.count(func(h *Health) {
		h.Calls++
		h.LongestCall.Duration = max(h.LongestCall.Duration, took)
	})
	c.r.c.callLog.add(c.describe(took))
}

// succeed records a call without an error.
func (c *call[T]) succeed() {
	c.r.c.panicked.Delete(c.item.Key)
	switch {
	case !c.request.Gone:
		c.r.incarnations.Succeeded(c.item.Key, c.request.Object.GetResourceVersion())
	case c.result.RequeueAfter == 0:
		c.endIncarnation()
	}
	c.r.c.succeeded.send()
}

// endIncarnation forgets an object that is gone. A later one of its key has its first call then.
func (c *call[T]) endIncarnation() {
	key := c.item.Key
	c.r.incarnations.End(key)
	_, err := c.r.c.primary.Lister().Get(key)
	if err == nil && c.r.isServed(key) {
		c.r.queue.Add(key, queue.Ask[reason]{Reason: reason{cause: Added}})
	}
}

// release gives the key up: changes that come from now on queue it. If the run is over, the present
// run may have parked the key.
func (c *call[T]) release() {
	if c.Abort != nil {
		c.r.serving.End(&c.Call)
	}
	for _, ch := range c.close(nil, false) {
		c.r.intake.add(c.item.Key, &ch)
	}
	c.r.c.inCall.Delete(c.item.Key)
	if c.r.ctx.Err() != nil {
		c.r.c.wake(c.item.Key)
	}
}

// maxChanges bounds the changes of an inbox. With more of them, some own writes may not be
// recognised.
const maxChanges = 32

// inbox keeps the changes that lead to another call of a key until its call has ended: only then it
// is known which of them the call itself made.
type inbox struct {
	mu      sync.Mutex // guards the rest
	changes []change
	closed  bool
}

// keep takes a change. It reports false if the call is over, if there are too many, or if the
// worker is of an earlier run.
func (c *call[T]) keep(in *intake, ch *change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if &c.r.intake.intake != in || c.closed || len(c.changes) > maxChanges {
		return false
	}
	c.changes = append(c.changes, *ch)
	return true
}

// close ends the call for the inbox, and returns the changes that have come. record takes the
// writes of the call, if there are any: a change that keep refuses because the inbox is closed
// finds them recorded.
func (b *inbox) close(record func(came []*barrier.Event), writes bool) (changes []change) {
	b.mu.Lock()
	defer b.mu.Unlock()
	changes, b.changes, b.closed = b.changes, nil, true
	if !writes {
		return changes
	}
	came := make([]*barrier.Event, len(changes))
	for i := range changes {
		came[i] = &changes[i].Event
	}
	record(came)
	return changes
}

// reasons returns the reasons of the call as the function receives them.
func (c *call[T]) reasons() []Reason {
	reasons := make([]Reason, len(c.item.Reasons))
	for i, w := range c.item.Reasons {
		reasons[i] = Reason{
			Cause: w.Reason.cause, Object: w.Reason.key, Own: w.Reason.own, Count: w.Count,
		}
		reasons[i].Manager = textOf(w.Reason.manager)
		if w.Reason.key != "" {
			reasons[i].Informer = c.r.c.informers.NameOf(w.Reason.informer)
		}
	}
	return reasons
}

// countOutcome counts the result and the error of the call, and returns what the queue does with
// the key.
func (c *call[T]) countOutcome() queue.Outcome {
	of := c.r.c
	if isTerminal(c.err) && !c.request.Gone {
		c.r.terminal.add(c.item.Key, c.err)
	} else {
		c.r.terminal.forget(c.item.Key)
	}
	if c.err == nil {
		of.count(func(h *Health) {
			if c.result.RequeueAfter > 0 {
				h.Requeues++
			} else {
				h.Succeeded++
			}
		})
		return queue.Outcome{After: max(c.result.RequeueAfter, 0)}
	}
	of.count(func(h *Health) {
		h.Errors++
		h.LastError, h.LastErrorOf, h.LastErrorAt = c.err.Error(), c.item.Key, time.Now()
	})
	attrs := []any{"failures", c.item.Failures + 1, "error", c.err}
	switch {
	case isTerminal(c.err):
		of.count(func(h *Health) { h.Terminal++ })
		if more, ok := of.terminals.Allow(); ok {
			c.logger.Error("a call failed, and waits for a change", append(attrs, more...)...)
		}
		return queue.Outcome{Result: queue.Fail}
	case apierrors.IsConflict(c.err) || c.r.callsCtx.Err() != nil:
		c.logger.Debug("a call is tried again", attrs...)
	default:
		if more, ok := of.retries.Allow(); ok {
			c.logger.Warn("a call failed, and is tried again", append(attrs, more...)...)
		}
	}
	of.count(func(h *Health) { h.Retries++ })
	return retryOf(c.err)
}

// startSpan starts the span of a call, if there is a tracer that does not panic. The function end
// ends it.
func (c *call[T]) startSpan() (traced context.Context, end func(Result, error)) {
	r, ctx, request, tracer := c.r, c.Context, &c.request, c.r.c.o.Tracer
	if tracer == nil {
		return ctx, nil
	}
	reasons := make([]string, len(request.Reasons))
	for i, reason := range request.Reasons {
		reasons[i] = reason.String()
	}
	defer func() {
		if value := recover(); value != nil {
			r.panicked("Tracer", request.Key, value)
			traced, end = ctx, nil
		}
	}()
	traced, span := tracer.Start(ctx, "reconcile "+r.c.o.Name,
		slog.String("controller", r.c.o.Name), slog.String("key", request.Key),
		slog.Any("reasons", reasons), slog.Int("moreReasons", request.MoreReasons),
		slog.Int("failures", request.Failures), slog.Duration("waited", request.Waited),
		slog.Bool("gone", request.Gone))
	return traced, func(result Result, err error) {
		defer func() {
			if value := recover(); value != nil {
				r.panicked("Tracer", request.Key, value)
			}
		}()
		span.End(source.Bound(err), slog.Duration("requeueAfter", result.RequeueAfter))
	}
}
