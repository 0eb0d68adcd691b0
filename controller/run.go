package controller

import (
	"context"
	"fmt"
	"runtime/pprof"
	"strings"
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

// housekeeping is the period of the checks that no event leads to.
const housekeeping = time.Second

// run is one run of a controller, from Run to its return.
type run[T tidings.Object] struct {
	primary      *caches.Informer
	c            *Controller[T]
	term         Term // nil without one
	queue        *queue.Queue[why]
	barrier      *barrier.Barrier // the controller's
	asker        barrier.Asker
	incarnations *incarnation.Tracker[T]
	writes       *firstWrites
	fights       *fights.Detector
	terms        terms.Succession

	// ctx ends when no more calls begin; calls is the context of the calls, and ends later.
	ctx       context.Context
	stop      context.CancelCauseFunc
	calls     context.Context
	endCalls  context.CancelCauseFunc
	group     sync.WaitGroup // the goroutines other than the workers
	callGroup sync.WaitGroup // the workers; their labels are those of calls

	gate gate.Gate // closed for keys, because of informers
	// turns is 0 before calls may begin, and after the end; then it is odd, and rises with each check.
	turns atomic.Uint64

	mu            sync.Mutex // guards the rest
	started       bool       // calls may begin
	ending        bool
	workers       int
	alive         map[int]bool                               // the workers that have not left, by number
	waitingFor    func() []string                            // nil: the run waits for nothing
	surveyed      survey                                     // its next is the housekeeper's alone
	registrations map[*caches.Informer]*tidings.Registration // nil until the handler is added
}

func newRun[T tidings.Object](ctx context.Context, c *Controller[T], term Term) *run[T] {
	r := &run[T]{
		c: c, primary: c.informers.Primary(), term: term, barrier: c.barrier, incarnations: incarnation.New[T](),
		writes:        &firstWrites{sent: map[string]time.Duration{}},
		registrations: map[*caches.Informer]*tidings.Registration{},
		alive:         map[int]bool{},
	}
	r.asker = barrier.Asker{
		Barrier: c.barrier, Server: c.o.Guard, Wake: func(key string) { r.queue.Wake(key) },
		Logger: c.o.Logger, Lines: &c.unasked,
	}
	r.ctx, r.stop = context.WithCancelCause(ctx)
	r.calls, r.endCalls = context.WithCancelCause(labelled(context.WithoutCancel(ctx), c.o.Name, "worker"))
	r.fights = fights.New(r.ctx, &c.informers, c.o.Logger)
	r.gate.Informers, r.gate.Barrier, r.gate.Server = &c.informers, c.barrier, c.o.Guard
	r.gate.MaxStaleness, r.gate.Logger, r.gate.Context = c.o.MaxStaleness, c.o.Logger, r.ctx
	r.gate.Go, r.gate.Follows = r.goes, r.isFollowed
	r.terms = terms.Succession{Term: term, Gate: &r.gate, Asker: &r.asker}
	r.queue = queue.New(queue.Options[why]{
		Workers: c.workers, Flow: r.flow(), FirstDelay: c.o.FirstDelay, MaxDelay: c.o.MaxDelay,
		Limiter: c.o.RateLimiter, Metrics: c.o.Metrics, Name: c.o.Name, Panicked: r.panicked,
		Requeued: why{cause: Requeue}, Retried: why{cause: Retry},
	})
	return r
}

// labelled returns a context with the labels of a goroutine of a controller in profiles.
func labelled(ctx context.Context, controller, does string) context.Context {
	return pprof.WithLabels(ctx, pprof.Labels("controller", controller, "does", does))
}

// goes starts a goroutine that end waits for, with labels in profiles.
func (r *run[T]) goes(does string, f func()) {
	r.group.Go(func() {
		pprof.SetGoroutineLabels(labelled(r.ctx, r.c.o.Name, does))
		f()
	})
}

// panicked records that a function of the options has panicked for a key. It may be called under a lock of
// the queue.
func (r *run[T]) panicked(function, key string, value any) {
	r.primary.Failures.Add("Options."+function, key, value)
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

// run runs until ctx or the term ends, or an informer stops.
func (r *run[T]) run(ctx context.Context) error {
	defer r.endCalls(nil)
	if r.term != nil {
		r.goes("term", func() {
			select {
			case <-r.term.Done():
				r.endCalls(r.term.Err())
				r.stop(r.term.Err())
			case <-r.calls.Done():
			}
		})
	}
	err := r.start()
	if err == nil {
		if t := r.c.slots.Load(); t != nil {
			r.serve()
			t.changed.send()
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
	followers := r.c.informers.All()
	for _, f := range followers {
		if f.Optional {
			r.followLate(f)
		}
	}
	for i, f := range followers {
		if f.Optional || !r.claim(f) {
			continue
		}
		r.waitForAll(followers[i:])
		if err := r.join(f, false); err != nil {
			return err
		}
	}
	for _, f := range r.c.informers.All() {
		r.checkFollower(f) // the server may have been set back since the last run
	}
	r.waitFor(func() []string { return []string{"what the last holder of the term has written"} })
	r.terms.TakeOver()
	r.waitFor(nil)
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
	r.goes("housekeeper", r.housekeep)
	if r.c.o.Guard != nil {
		r.goes("asker", func() { r.asker.Run(r.ctx) })
	}
	r.setWorkers(r.c.workers)
	return nil
}

// waitFor sets the function that returns the names for Health.WaitingFor; nil: there are no
// names.
func (r *run[T]) waitFor(names func() []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waitingFor = names
}

// waitForAll sets Health.WaitingFor to the first informer, and those that are not synced.
func (r *run[T]) waitForAll(followers []*caches.Informer) {
	r.waitFor(func() (names []string) {
		for i, f := range followers {
			if i == 0 || !f.Optional && !f.Handle.HasSynced() {
				names = append(names, f.Name())
			}
		}
		return names
	})
}

// setWorkers starts the workers that are missing; the queue ends those that are too many.
func (r *run[T]) setWorkers(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started || r.ending {
		return
	}
	r.workers = n
	r.queue.SetWorkers(n)
	for i := range n {
		if !r.alive[i] {
			r.alive[i] = true
			r.callGroup.Go(func() { r.work(i) })
		}
	}
}

// leaves reports whether a worker has to leave, and records that it leaves. The worker may be
// needed again since the queue sent it away.
func (r *run[T]) leaves(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n < r.workers && !r.ending {
		return false
	}
	delete(r.alive, n)
	return true
}

// everything requests a call of every key.
func (r *run[T]) everything() {
	for key := range r.c.primary.Lister().All() {
		if r.isServed(key) {
			r.queue.Add(key, queue.Ask[why]{Band: queue.Background, Reason: why{cause: Everything}})
		}
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
			renewed = r.checkFollower(f) || renewed
		}
		if renewed {
			r.everything()
		}
		r.checkGate()
		r.logLong()
		r.fights.Check()
		if r.c.slots.Load() != nil && !time.Now().Before(r.surveyed.next) {
			r.survey()
		}
	}
}

// checkGate wakes the keys for which every informer has what calls need again.
func (r *run[T]) checkGate() {
	if r.gate.Check() {
		r.queue.WakeAll()
	}
}

// wake queues keys that are parked.
func (r *run[T]) wake(keys []string) {
	for _, key := range keys {
		r.queue.Wake(key)
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
		p, ok := r.barrier.Held(k.Key)
		if d := time.Since(p.Since); ok && d >= barrier.AskAfter && d < barrier.AskAfter+housekeeping {
			r.c.o.Logger.Warn("a key is held back, as a cache does not show what its calls wrote",
				"key", p.Key, "informer", p.Informer, "object", p.Object, "version", p.Version)
		}
	}
}

// checkFollower ends the run if an informer has stopped. It reports whether every key is to be
// called: the informer follows a new history of the server, as after the restoring of a backup, or
// a function that decides which keys a change concerns has panicked.
func (r *run[T]) checkFollower(f *caches.Informer) (all bool) {
	if err := f.Over(); err != nil && !f.Optional {
		r.stop(fmt.Errorf("informer %s: %w", f.Name(), err))
		return false
	}
	if f.WentBack() {
		r.wake(r.barrier.NewHistory(f))
		all = true
	}
	if f.ClaimQuestion() {
		r.goes("resolver", func() {
			if f.ResolveAnew(r.ctx) {
				r.everything()
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

// end prevents further calls, waits for the running ones and ends all goroutines.
func (r *run[T]) end() error {
	r.stop(nil)
	r.mu.Lock()
	r.ending = true
	for _, registration := range r.registrations {
		if registration != nil {
			registration.Remove()
		}
	}
	r.mu.Unlock()
	r.queue.Close()
	ended := make(chan struct{})
	go func() {
		r.callGroup.Wait()
		close(ended)
	}()
	grace := r.c.o.StopGrace
	if !isClosedWithin(ended, grace, r.calls.Done()) {
		r.endCalls(ErrStopping)
		if !isClosedWithin(ended, grace, nil) {
			r.group.Wait()
			return fmt.Errorf("%w after %v: %s", ErrCallsRunning, grace, r.stragglers())
		}
	}
	r.endCalls(ErrStopping)
	r.group.Wait()
	r.terms.Leave()
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

// stragglers names the calls that run.
func (r *run[T]) stragglers() string {
	var names []string
	for _, k := range r.queue.Keys(queue.Running, 10) {
		names = append(names, fmt.Sprintf("%s for %v", k.Key, k.For.Round(time.Millisecond)))
	}
	return strings.Join(names, ", ")
}
