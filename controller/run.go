package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/fights"
	"github.com/tidings-go/tidings/controller/internal/gate"
	"github.com/tidings-go/tidings/controller/internal/incarnation"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/controller/internal/terms"
)

const (
	// housekeeping is the period of the checks that no event leads to.
	housekeeping = time.Second
	// longHeld is the time after which a line says that a key is held back.
	longHeld = 10 * time.Second
)

// run is one run of a controller, from Run to its return:
//
//	handlers ─▶ intake ─▶ queue ─▶ workers ─▶ call: begin (gate, slots, barrier) ─▶ make ─▶ conclude
//
// The housekeeper wakes what waits for the gate or is due in the barrier. The asker asks the
// server.
type run[T tidings.Object] struct {
	c            *Controller[T]
	term         Term // nil without one
	succession   terms.Succession
	handlers     handlers
	intake       *primaryIntake[T]
	queue        *queue.Queue[reason]
	workers      workers
	gate         gate.Gate        // closed for keys, because of informers
	barrier      *barrier.Barrier // the controller's
	asker        barrier.Asker
	incarnations *incarnation.Tracker[T]
	fights       *fights.Detector
	terminal     terminalKeys
	serving      *serving[T] // nil without a group

	// ctx ends when no more calls begin. callsCtx is the context of the calls, and ends later.
	ctx      context.Context
	stop     context.CancelCauseFunc
	callsCtx context.Context
	endCalls context.CancelCauseFunc
	group    sync.WaitGroup // the goroutines other than the workers

	// turns is 0 before calls may begin and after the end. Between, it is odd, and rises by 2 with
	// each check of the housekeeper.
	turns atomic.Uint64

	mu         sync.Mutex // guards the rest
	started    bool       // calls may begin
	ending     bool
	waitingFor func() []string // nil: the run waits for nothing
}

func newRun[T tidings.Object](ctx context.Context, c *Controller[T], term Term) *run[T] {
	r := &run[T]{c: c, term: term, barrier: c.barrier, incarnations: incarnation.New[T]()}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	lasting := labelled(context.WithoutCancel(ctx), c.o.Name, "worker")
	r.callsCtx, r.endCalls = context.WithCancelCause(lasting)
	r.queue = queue.New(queue.Options[reason]{
		Workers: c.workers, Flow: r.flow(), FirstDelay: c.o.FirstDelay, MaxDelay: c.o.MaxDelay,
		Limiter: c.o.RateLimiter, Metrics: c.o.Metrics, Name: c.o.Name, Panicked: r.panicked,
		Requeued: reason{cause: Requeue}, Retried: reason{cause: Retry},
	})
	r.fights = fights.New(r.ctx, &c.informers, c.o.Logger)
	if m := c.member.Load(); m != nil {
		r.serving = &serving[T]{share: m.share, r: r}
	}
	r.handlers.informers, r.handlers.slots, r.handlers.logger = &c.informers, c.o.Slots, c.o.Logger
	r.handlers.registrations = map[*caches.Informer]*tidings.Registration{}
	r.intake = &primaryIntake[T]{o: &c.o, primary: c.primary, incarnations: r.incarnations}
	r.intake.intake = intake{
		inCall: &c.inCall, queue: r.queue, barrier: c.barrier, fights: r.fights, isServed: r.isServed,
	}
	r.workers.queue, r.workers.handle, r.workers.callsCtx = r.queue, r.handle, r.callsCtx
	r.workers.waits, r.workers.logger, r.workers.alive = &c.waits, c.o.Logger, map[int]bool{}
	r.gate.Informers, r.gate.Barrier, r.gate.Server = &c.informers, c.barrier, c.o.Guard
	r.gate.MaxStaleness, r.gate.Logger, r.gate.Context = c.o.MaxStaleness, c.o.Logger, r.ctx
	r.gate.Go, r.gate.Follows = r.spawn, r.handlers.follow
	r.asker = barrier.Asker{
		Barrier: c.barrier, Server: c.o.Guard, Wake: r.queue.Wake, Logger: c.o.Logger, Lines: &c.unasked,
	}
	r.succession = terms.Succession{Term: term, Gate: &r.gate, Asker: &r.asker}
	return r
}

// labelled returns a context with the labels of a goroutine of a controller in profiles.
func labelled(ctx context.Context, controller, does string) context.Context {
	return pprof.WithLabels(ctx, pprof.Labels("controller", controller, "does", does))
}

// spawn starts a goroutine that end waits for, with labels in profiles.
func (r *run[T]) spawn(does string, f func()) {
	r.group.Go(func() {
		pprof.SetGoroutineLabels(labelled(r.ctx, r.c.o.Name, does))
		f()
	})
}

// panicked records that a function of the options has panicked for a key. It may be called under a
// lock of the queue.
func (r *run[T]) panicked(function, key string, value any) {
	r.c.informers.Primary().Failures.Add("Options."+function, key, value)
}

// flow returns Options.Flow, or nil. If the function panics for a key, the key is in the flow "".
func (r *run[T]) flow() func(key string) string {
	flow := r.c.o.Flow
	if flow == nil {
		return nil
	}
	return func(key string) (name string) {
		defer func() {
			if value := recover(); value != nil {
				r.panicked("Flow", key, value)
			}
		}()
		return flow(key)
	}
}

// isServed reports whether changes of a key lead to a call.
func (r *run[T]) isServed(key string) bool { return r.serving == nil || r.serving.isServed(key) }

// isTermOver reports whether the term is closed. The run may not have ended with it yet: the
// process may have stood still.
func (r *run[T]) isTermOver() bool { return r.term != nil && r.term.Err() != nil }

// hasEndedWith reports whether a run with an error, or without one, has ended because its term has.
// Calls that still run have not.
func hasEndedWith(t Term, err error) bool {
	return t != nil && t.Err() != nil && !errors.Is(err, ErrCallsRunning)
}

// run runs until ctx or the term ends, or an informer stops.
func (r *run[T]) run(ctx context.Context) error {
	defer r.endCalls(nil)
	if r.term != nil {
		r.spawn("term", func() {
			select {
			case <-r.term.Done():
				r.endCalls(r.term.Err())
				r.stop(r.term.Err())
			case <-r.callsCtx.Done():
			}
		})
	}
	err := r.start()
	if err == nil {
		if r.serving != nil {
			r.serve()
			r.serving.changed.send()
		}
		<-r.ctx.Done()
	}
	if r.ctx.Err() != nil {
		err = nil
		if ctx.Err() == nil {
			err = context.Cause(r.ctx)
		}
	}
	if ending := r.end(); ending != nil {
		return ending
	}
	return err
}

// start waits for the informers and starts the workers.
func (r *run[T]) start() error {
	informers := r.c.informers.All()
	for _, f := range informers {
		if f.Optional {
			r.followLate(f)
		}
	}
	for i, f := range informers {
		if f.Optional || !r.handlers.claim(f) {
			continue
		}
		r.setWaitingFor(func() []string { return unsynced(informers[i:]) })
		if err := r.handlers.join(r.ctx, f, false); err != nil {
			return err
		}
	}
	for _, f := range r.c.informers.All() {
		r.checkInformer(f) // the server may have been set back since the last run
	}
	r.setWaitingFor(func() []string {
		return []string{"what the last holder of the term has written"}
	})
	r.succession.TakeOver()
	r.setWaitingFor(nil)
	r.checkGate()
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil
	}
	r.turns.Store(1)
	r.spawn("housekeeper", r.housekeep)
	if r.c.o.Guard != nil {
		r.spawn("asker", func() { r.asker.Run(r.ctx) })
	}
	r.workers.start(r.c.workers)
	return nil
}

// setWaitingFor sets the function that returns the names for Health.WaitingFor; nil if the run waits
// for nothing.
func (r *run[T]) setWaitingFor(names func() []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitingFor = names
}

// unsynced returns the names of the informers that a start waits for: the first one, which it is at,
// and the others that are not synced.
func unsynced(informers []*caches.Informer) (names []string) {
	for i, f := range informers {
		if i == 0 || !f.Optional && !f.Handle.HasSynced() {
			names = append(names, f.Name())
		}
	}
	return names
}

// followLate follows an informer that calls do not wait for, because it is optional, or was added
// while the controller ran.
func (r *run[T]) followLate(f *caches.Informer) {
	if !r.handlers.claim(f) {
		return
	}
	r.spawn("joiner", func() {
		err := r.handlers.join(r.ctx, f, true)
		switch {
		case r.ctx.Err() != nil:
		case err != nil:
			r.c.o.Logger.Error("a secondary is not followed", "informer", f.Name(), "error", err)
		case f.Removed.Err() == nil && r.hasStarted():
			r.intake.everything()
		}
	})
}

// hasStarted reports whether calls may have begun.
func (r *run[T]) hasStarted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// serve begins the waits for the versions of entries, if the run has started and does not end.
func (r *run[T]) serve() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started || r.ending {
		return
	}
	for _, w := range r.serving.Expect() {
		r.spawn("opener", func() { r.serving.open(w) })
	}
}

// wake queues keys that are parked.
func (r *run[T]) wake(keys []string) {
	for _, key := range keys {
		r.queue.Wake(key)
	}
}

// housekeep makes the checks that no event leads to, most of them once a second.
func (r *run[T]) housekeep() {
	ticker := time.NewTicker(housekeeping)
	defer ticker.Stop()
	defer r.turns.Store(0)
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-r.barrier.Alarm():
			r.wake(r.barrier.CheckDue())
			continue
		case <-ticker.C:
		}
		r.turns.Add(2)
		renewed := false
		for _, f := range r.c.informers.All() {
			renewed = r.checkInformer(f) || renewed
		}
		if renewed {
			r.intake.everything()
		}
		r.checkGate()
		r.logLong()
		r.fights.Check()
		if r.serving != nil {
			r.serving.survey()
		}
	}
}

// checkGate wakes the keys for which every informer has what calls need again.
func (r *run[T]) checkGate() {
	if r.gate.Check() {
		r.queue.WakeAll()
	}
}

// slowCall is the time after which a call that runs is logged.
const slowCall = time.Minute

// logLong logs, once, a call that takes long and a key that is held back for long. It logs the
// longest, as the others may be many.
func (r *run[T]) logLong() {
	for _, k := range r.queue.Keys(queue.Running, 1) {
		if k.For >= slowCall && k.For < slowCall+housekeeping {
			r.c.o.Logger.Warn("a call takes long", "key", k.Key, "for", k.For)
		}
	}
	for _, k := range r.queue.Keys(queue.Parked, 1) {
		held, ok := r.barrier.Held(k.Key)
		if d := time.Since(held.Since); ok && d >= longHeld && d < longHeld+housekeeping {
			r.c.o.Logger.Warn("a key is held back, as a cache does not show what its calls wrote",
				"key", held.Key, "informer", held.Informer, "object", held.Object, "version", held.Version)
		}
	}
}

// checkInformer ends the run if an informer has stopped. It reports whether every key is to be
// called: the informer follows a new history of the server, as after the restoring of a backup, or
// a function that decides which keys a change concerns has panicked.
func (r *run[T]) checkInformer(f *caches.Informer) (all bool) {
	if err := f.Over(); err != nil && !f.Optional {
		r.stop(fmt.Errorf("informer %s: %w", f.Name(), err))
		return false
	}
	if f.WentBack() {
		r.wake(r.barrier.NewHistory(f))
		all = true
	}
	if f.ClaimQuestion() {
		r.spawn("resolver", func() {
			if f.ResolveAnew(r.ctx) {
				r.intake.everything()
			}
		})
	}
	if failed := f.Failures.Next(); failed != nil {
		r.c.o.Logger.Error("a function panicked", "function", failed.Function, "informer", f.Name(),
			"object", failed.Object, "panic", fmt.Sprint(failed.Value), "stack", string(failed.Stack))
		all = all || failed.Everything
	}
	return all
}

// end ends the run, in this order:
//
//  1. No call begins any more.
//  2. The handlers are removed: no change is queued.
//  3. The workers leave, once their calls have ended.
//  4. After the grace, the contexts of the calls end; after another one, the calls are named in the
//     error, and the versions of their writes are not left to the next term.
//  5. The other goroutines end.
//  6. The versions are left.
func (r *run[T]) end() error {
	r.stop(nil)
	r.mu.Lock()
	r.ending = true
	r.mu.Unlock()
	r.handlers.end()
	ended := r.workers.end()
	grace := r.c.o.StopGrace
	if !isClosedWithin(ended, grace, r.callsCtx.Done()) {
		r.endCalls(ErrStopping)
		if !isClosedWithin(ended, grace, nil) {
			r.group.Wait()
			return fmt.Errorf("%w after %v: %s", ErrCallsRunning, grace, r.workers.stragglers())
		}
	}
	r.endCalls(ErrStopping)
	r.group.Wait()
	r.succession.Leave()
	return nil
}

// isClosedWithin waits for a channel, for a time, or until another channel is closed.
func isClosedWithin(done <-chan struct{}, d time.Duration, other <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-other:
	}
	return false
}
