package controller

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/internal/see/lograte"
	"github.com/tidings-go/tidings/source"
)

// Errors of this package. Returned errors wrap them.
var (
	// ErrRunning is returned by Run while the controller runs.
	ErrRunning = errors.New("the controller is running already")
	// ErrStopping is the cause with which a call's context ends when its controller stops.
	ErrStopping = errors.New("the controller is stopping")
	// ErrCallsRunning is returned by Run when calls have not returned in time.
	ErrCallsRunning = errors.New("calls are still running")
)

// Term is a time during which a controller may write. An election or a membership of a group gives
// it.
type Term = guard.Term

// Controller calls a function for the keys of the objects of type T, when they or their secondaries
// change. Use [New]. Its methods may be called from any goroutine.
type Controller[T tidings.Object] struct {
	o         Options[T]
	reconcile Func[T]
	primary   *tidings.Informer[T]
	succeeded broadcast
	barrier   *barrier.Barrier
	member    atomic.Pointer[controllerMember[T]] // nil without a group
	running   atomic.Pointer[run[T]]              // nil without a run; written under mu
	// inCall has the *call of each key that is with a worker. A worker may be of an earlier run, if
	// its call did not return in time.
	inCall sync.Map
	// panicked has the stack of the last panic by key. A successful call removes the stack of its key.
	panicked sync.Map
	// The limiters of the log lines about calls that fail, and about writes that the server cannot be
	// asked about.
	retries, terminals, unasked lograte.Limiter

	callLog   callLog
	informers caches.Set // changed under mu

	// waits measures the waits of keys in the queue, durations the durations of calls. callLag
	// measures the time from the sending of an own write to the beginning of the call that it led to.
	waits, durations, callLag histogram.Histogram

	figuresMu sync.Mutex // guards figures, dropped and mostAdded
	figures   Health     // the counters of calls
	dropped   uint64     // counts the queued keys that no worker took: their run or entry ended before
	mostAdded uint64     // the largest Health.Added that was returned

	mu      sync.Mutex // guards the rest
	workers int
	last    error // the error of the last run; nil while one runs
}

// New returns a controller of the objects of an informer. It does nothing before Run. The informers
// of the controller must be of the same server as o.Guard.
func New[T tidings.Object](
	primary *tidings.Informer[T], o Options[T], reconcile Func[T],
) (*Controller[T], error) {
	fail := func(err error) (*Controller[T], error) {
		if o.Name == "" {
			return nil, fmt.Errorf("controller: New: %w", err)
		}
		return nil, fmt.Errorf("controller: New %q: %w", o.Name, err)
	}
	switch {
	case o.Name == "":
		return fail(errors.New("the controller needs a name: set Options.Name"))
	case reconcile == nil:
		return fail(errors.New("the function is nil"))
	}
	f, err := caches.New(primary)
	if err != nil {
		return fail(err)
	}
	if err := o.check(f); err != nil {
		return fail(err)
	}
	o = o.withDefaults()
	c := &Controller[T]{
		o: o, reconcile: reconcile, primary: primary, workers: o.Workers, barrier: barrier.New(),
	}
	f.Subscribe = func() (*tidings.Registration, error) {
		r := c.running.Load()
		return addHandler(primary, c.o.Name, c.o.Resync, func(e tidings.Event[T]) {
			r.intake.changed(f, e)
		})
	}
	if err := c.follow(f); err != nil {
		return fail(err)
	}
	if o.Slots != nil {
		c.member.Store(&controllerMember[T]{newShare(o.Slots, entries.Divided), c})
	}
	for _, s := range o.Secondaries {
		if err := c.AddSecondary(s); err != nil {
			return nil, err
		}
	}
	if o.Slots != nil {
		o.Slots.add(c.member.Load())
	}
	return c, nil
}

func (c *Controller[T]) stopsWithin() time.Duration { return 2*c.o.StopGrace + 10*time.Second }

func (c *Controller[T]) hasSlots() bool { return c.o.Slots != nil }

func (c *Controller[T]) leaveSlots() {
	if c.o.Slots != nil {
		c.o.Slots.remove(c.member.Load())
	}
}

func (c *Controller[T]) asMember(group *Slots, number int) member {
	m := &controllerMember[T]{newShare(group, number), c}
	c.member.Store(m)
	return m
}

// errTerm is the error of a run under the term of an election.
var errTerm = errors.New("a controller with Options.Slots has the terms of its group: " +
	"run it without an election, on each replica")

// Name returns the name of the controller.
func (c *Controller[T]) Name() string { return c.o.Name }

// AddSecondary adds a secondary. If the controller runs, every key is called once when the informer
// of the secondary is synced. Make the secondary Optional if the server may not serve the type.
func (c *Controller[T]) AddSecondary(s Secondary) error {
	f, err := c.openSecondary(s)
	if err != nil {
		return fmt.Errorf("controller %q: %w", c.o.Name, err)
	}
	if r := c.running.Load(); r != nil {
		r.followLate(f)
	}
	return nil
}

func (c *Controller[T]) openSecondary(s Secondary) (*caches.Informer, error) {
	if s == nil {
		return nil, errNoSecondary
	}
	f, err := s.open(c)
	if err != nil {
		return nil, err
	}
	if err := c.o.Slots.checkSecondary(f); err != nil {
		return nil, err
	}
	return f, c.follow(f)
}

// The methods by which secondaries see their controller.

func (c *Controller[T]) objectType() reflect.Type { return reflect.TypeFor[T]() }

func (c *Controller[T]) primaryInformer() any { return c.primary }

func (c *Controller[T]) knownPrimary() source.Resource { return c.informers.Primary().Known() }

func (c *Controller[T]) present() *intake { return &c.running.Load().intake.intake }

// follow adds an informer.
func (c *Controller[T]) follow(f *caches.Informer) error {
	server := f.Server()
	if g := c.o.Guard; g != nil && server != "" && server != g.Host() {
		return fmt.Errorf("informer %s follows the server %s, and the guard is for %s: "+
			"make both from the same rest.Config", f.Name(), server, g.Host())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.informers.Add(f)
	if m := c.member.Load(); m != nil {
		m.group.stay.prolong(f)
	}
	return nil
}

// RemoveSecondary removes the secondaries of an informer: its changes lead to no more calls. It
// returns an error for an informer without a secondary. The index of References stays in the
// primary's informer, and is used again if the same Secondary is added again.
func (c *Controller[T]) RemoveSecondary(informer any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	removed := c.informers.Remove(informer)
	if len(removed) == 0 {
		return fmt.Errorf("controller %q has no secondary with that informer", c.o.Name)
	}
	for _, f := range removed {
		wake := c.barrier.Forget(f)
		if r := c.running.Load(); r != nil {
			r.handlers.remove(f)
			r.wake(wake)
		}
	}
	return nil
}

// Enqueue requests a call of a key now, which replaces an earlier RequeueAfter. It does nothing
// while the controller does not run, or for a key of a slot that is not served.
func (c *Controller[T]) Enqueue(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running.Load(); r != nil && r.isServed(key) {
		r.queue.Requeue(key)
	}
}

// SetWorkers changes the number of workers. It does not wait for calls that run.
func (c *Controller[T]) SetWorkers(n int) error {
	if n < 1 || n > mostWorkers {
		return fmt.Errorf("controller %q: SetWorkers(%d): use 1 to %d", c.o.Name, n, mostWorkers)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.workers = n
	if r := c.running.Load(); r != nil {
		r.workers.set(n)
	}
	return nil
}

// Run calls the function until ctx ends. It begins when the informers are synced, with a call for
// each key. When ctx ends, no more calls begin; those that run have Options.StopGrace, then their
// contexts end with [ErrStopping], and after as long again Run returns ErrCallsRunning with their
// keys. Run returns an error that is tidings.ErrStopped when an informer stops, and may be called
// again after it has returned.
//
// With Options.Slots, calls begin when this process is a member of the group and serves slots. The
// end of ctx makes the process leave the group. Until it has, calls and the informers of the
// controller go on, and then Run returns, with the error of the group if it has none of its own.
func (c *Controller[T]) Run(ctx context.Context) error { return c.RunTerm(ctx, nil) }

// RunTerm is Run within a term: it ends with the term too. Then the contexts of calls end at once,
// and the guard refuses their writes.
//
// If the term has the method HandOver of an election's term, calls begin when the caches have
// reached the versions that the last holder left. If it has a method Reached(map[string]string),
// the method receives the newest versions by resource and selection that the calls have written, or
// nil if these are not known.
func (c *Controller[T]) RunTerm(ctx context.Context, term Term) error {
	var err error
	switch {
	case c.member.Load() == nil:
		err = c.runTerm(ctx, term)
	case term != nil:
		err = errTerm
	default:
		err = c.member.Load().runMemberships(ctx)
	}
	if err != nil {
		return fmt.Errorf("controller %q: %w", c.o.Name, err)
	}
	return nil
}

func (c *Controller[T]) runTerm(ctx context.Context, term Term) error {
	r, err := c.begin(ctx, term)
	if err == nil {
		err = r.run(ctx)
		c.end(err)
	}
	return err
}

func (c *Controller[T]) begin(ctx context.Context, term Term) (*run[T], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running.Load() != nil {
		return nil, ErrRunning
	}
	c.barrier.Restart()
	if m := c.member.Load(); m != nil {
		m.Restart()
	}
	r := newRun(ctx, c, term)
	c.running.Store(r)
	c.last = nil
	return r, nil
}

func (c *Controller[T]) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.countDropped(bandsOf(c.running.Load().queue.Stats()).Sum())
	c.running.Store(nil)
	c.last = err
	if m := c.member.Load(); m != nil {
		m.Restart()
	}
}

// wake queues a key that the present run has parked because a call of an earlier run was running.
func (c *Controller[T]) wake(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.running.Load(); r != nil {
		r.queue.Wake(key)
	}
}
