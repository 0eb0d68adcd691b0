package engine

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/internal/histogram"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Options configure a collection. Name, Describe and Part are required.
type Options[T any] struct {
	// Name is what errors, logs and health call the collection.
	Name string
	// Describe returns the version and UID of a cached object, "" where it has none.
	Describe func(T) (version, uid string)
	// Compare orders versions; nil means delta.CompareDecimal.
	Compare func(a, b string) (order int, ok bool)
	// Untrusted reports whether versions mean nothing at present: then lists decode every
	// object. nil trusts versions.
	Untrusted func() bool
	// Indexes are the index functions by their identity.
	Indexes map[any]store.IndexFunc[T]
	// Namespaces have a part each; none means one part for everything.
	Namespaces []string
	// Slots are those of which the collection has the objects; nil means all objects.
	Slots *slot.Holding
	// Scope is the known scope of the type. With NamespacesByDefault, Namespaces give way to
	// one part for everything while the server says that objects of the type have none.
	Scope               source.Scope
	NamespacesByDefault bool
	// Part returns the source and the options of a namespace's part, each time that the part
	// begins to run.
	Part func(ctx context.Context, namespace string, scope source.Scope) Part[T]
	// Supervise runs a reflector until ctx ends, anew after a panic; nil calls run.
	Supervise func(ctx context.Context, run func(context.Context))
	// ReportUnchanged publishes objects that a list found unchanged as updates.
	ReportUnchanged bool
	// Share returns the function that shares the parts of objects which were decoded for
	// themselves. It returns an equal object, and is called from several goroutines. Share is
	// called when Run begins; nil, and a nil function, share nothing.
	Share func() func(T) T
	// Known returns what a batch is compared with; nil is the cache.
	Known func(cache store.Snapshot[T]) delta.Known[T]
	// BeforeApply may correct a batch; Observe receives its changes when the cache holds
	// them and no handler has received them. No other batch is applied meanwhile. nil is
	// nothing.
	BeforeApply func(*delta.Batch[T])
	Observe     func([]change.Change[T])
	// Metrics is called for each batch; nil is nothing.
	Metrics Metrics
	// Background are functions that run while the reflectors do, on goroutines of their own.
	Background []func(context.Context)
	// Resync replaces the rule of resyncs; the zero value leaves it.
	Resync ResyncRule
	// StopGrace is how long a stop waits for handlers; 0 means 10 s. Then OnStuck is called
	// with an error that names them, and the wait begins anew; with a nil OnStuck, Run returns
	// the error.
	StopGrace time.Duration
	OnStuck   func(error)
	// OnNamespaces is called with the namespaces after a change of them. It must not call
	// the collection.
	OnNamespaces func([]string)
	// OnSynced is called when the first complete list is applied, OnIndexErrors with the
	// failures of index functions, OnNotRun with the error of a reflector that did not run.
	// They may call the collection.
	OnSynced      func()
	OnIndexErrors func([]store.IndexError)
	OnNotRun      func(error)
	// AfterDecoding counts the objects that were searched for common parts after decoding;
	// nil counts none.
	AfterDecoding func() source.SharerStats
}

// Metrics times batches.
type Metrics interface {
	// Batch calls apply.
	Batch(apply func())
	// Reached receives the length of the queue and the version of the cache.
	Reached(queued int, version string)
}

// Part has the source and the options of the reflector of one namespace. The collection sets
// the fields Name, Partition, Known, Compare, OnChange and Share of Reflector.
type Part[T any] struct {
	Source    source.Source[T]
	Reflector reflector.Options[T]
}

// Collection is a watched, cached and fanned-out collection.
//
// Its goroutines belong to Run, which waits for all of them: a reflector per namespace,
// which also ends when the namespace is removed, the resync timer and the functions of
// Options.Background. The goroutine that called Run is the processor. The goroutines of the
// handlers belong to the log, which Run closes last.
type Collection[T any] struct {
	*Lifecycle
	o Options[T]

	store    *store.Store[T]
	queue    *delta.Queue[T]
	fan      *fanout.Log[T]
	progress progress
	parts    parts[T]
	late     lateSharing[T]

	// applyMu is held while a batch is applied and published, while a handler joins, while
	// namespaces are added and while a façade writes to the cache by hand. So the snapshot
	// that a handler starts from is the same state as the end of the log.
	applyMu Lock

	synced  chan struct{} // closed when the first complete list is applied
	listed  chan struct{} // one token: a complete list was applied
	stopped atomic.Bool   // handlers are not called any more
	exited  atomic.Bool   // a callback has called runtime.Goexit

	resyncPeriod time.Duration // of Options.Resync; written before the timer starts
	indexErrs    indexErrors
	batches      histogram.Histogram // how long each batch took to apply
	recording    *recording
}

const defaultStopGrace = 10 * time.Second

// New returns a collection. Its errors are those of the indexes and the namespaces.
func New[T any](o Options[T]) (*Collection[T], error) {
	if o.StopGrace == 0 {
		o.StopGrace = defaultStopGrace
	}
	if o.Compare == nil {
		o.Compare = delta.CompareDecimal
	}
	if o.Untrusted == nil {
		o.Untrusted = func() bool { return false }
	}
	if o.Known == nil {
		o.Known = func(cache store.Snapshot[T]) delta.Known[T] { return cache }
	}
	if o.Supervise == nil {
		o.Supervise = func(ctx context.Context, run func(context.Context)) { run(ctx) }
	}
	c := &Collection[T]{
		Lifecycle: newLifecycle(o.Name), o: o, applyMu: NewLock(),
		synced: make(chan struct{}), listed: make(chan struct{}, 1),
		recording: newRecording(o.Name),
		late:      lateSharing[T]{changed: map[string]struct{}{}, begun: make(chan struct{}, 1)},
	}
	c.parts.changeMu = NewLock()
	namespaces := o.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{""}
	}
	var partitions []string
	for _, namespace := range namespaces {
		p := newPart[T](namespace)
		c.parts.list = append(c.parts.list, p)
		c.progress.add(p.prefix)
		partitions = append(partitions, p.prefix)
	}
	var err error
	c.store, err = store.New(store.Options[T]{Indexes: o.Indexes, OnIndexError: c.indexErrs.add})
	if err != nil {
		return nil, err
	}
	c.queue, err = delta.New(delta.Options[T]{
		Known:    func() delta.Known[T] { return o.Known(c.store.Snapshot()) },
		Describe: o.Describe, Compare: o.Compare,
		Partitions: partitions, ReportUnchanged: o.ReportUnchanged,
	})
	if err != nil {
		return nil, err
	}
	describe := o.Describe // and no other option: the log outlives the cache
	uid := func(obj T) string {
		_, uid := describe(obj)
		return uid
	}
	c.fan = fanout.New(fanout.Options[T]{Name: o.Name, UID: uid})
	return c, nil
}

// Store returns the cache. Only the collection writes to it, and WriteByHand.
func (c *Collection[T]) Store() *store.Store[T] { return c.store }

// Life returns the lifecycle, which does not refer to the cache.
func (c *Collection[T]) Life() *Lifecycle { return c.Lifecycle }

// Synced is closed when the first complete list is applied.
func (c *Collection[T]) Synced() <-chan struct{} { return c.synced }

// HasSynced reports whether Synced is closed.
func (c *Collection[T]) HasSynced() bool { return isClosed(c.synced) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// IsStopped reports whether the collection has stopped calling its handlers.
func (c *Collection[T]) IsStopped() bool { return c.stopped.Load() }

// End ends the run, and closes a collection that was never claimed. It does not wait.
// released says that no handle is left.
func (c *Collection[T]) End(released bool) {
	if c.end(released) {
		c.queue.Close()
		c.finish(c.stopHandlers(), stuckIn(c.fan))
	}
	c.progress.wake()
}

// Run lists and watches until ctx ends, the context that Claim has returned. Its errors are
// ErrHandlersStuck, with the names of the handlers, and ErrGoexit.
func (c *Collection[T]) Run(ctx context.Context) (err error) {
	defer func() { c.finish(err, stuckIn(c.fan)) }()
	c.fan.Start()
	if c.o.Slots != nil {
		defer slot.Attach(c.o.Slots, c)()
	}
	c.startParts(ctx)
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		c.progress.wake()
		c.parts.end()
		c.queue.Close()
	})
	returned := false
	defer func() {
		if !returned {
			if value := recover(); value != nil {
				panic(value)
			}
			c.endByGoexit()
		}
		<-ended
		if err = c.stopHandlers(); err == nil && c.exited.Load() {
			err = ErrGoexit
		}
	}()
	c.label(ctx, "processor")
	defer pprof.SetGoroutineLabels(ctx)
	c.process(ctx)
	returned = true
	return nil
}

// endByGoexit ends the run, because a callback has called runtime.Goexit, as a failing test
// does. Its goroutine cannot go on, and nothing else reads from the server or applies batches.
func (c *Collection[T]) endByGoexit() {
	c.exited.Store(true)
	c.end(false)
}

// stuckIn returns a function that reports whether a handler of a closed log runs.
func stuckIn[T any](fan *fanout.Log[T]) func() bool {
	return func() bool { return len(fan.Subscriptions()) > 0 }
}

// stopHandlers drops the pending notifications and waits for the running calls.
func (c *Collection[T]) stopHandlers() error {
	c.applyMu.Lock()
	c.stopped.Store(true)
	c.fan.Close()
	c.applyMu.Unlock()
	c.progress.wake()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), c.o.StopGrace)
		err := c.fan.Wait(ctx)
		cancel()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%w within %v of the stop: %w", ErrHandlersStuck, c.o.StopGrace, err)
		if c.o.OnStuck == nil {
			return err
		}
		c.o.OnStuck(err)
	}
}
