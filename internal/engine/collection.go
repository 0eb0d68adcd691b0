package engine

import (
	"context"
	"runtime/pprof"
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/store"
)

// Collection is a watched, cached and fanned-out collection.
//
// Its goroutines belong to Run, which waits for all of them: a reflector per namespace, which also
// ends when the namespace is removed, with a goroutine for slots that come, the sharing of objects
// that have not changed, the resync timer and the functions of Options.Background. The goroutine
// that called Run is the processor. The goroutines of the handlers belong to the log, which Run
// closes last.
type Collection[T any] struct {
	*shared[T]
	*parts[T]
	*subscriptions[T]
	view[T]
	late *lateSharing[T]

	synced    chan struct{}       // closed when the first complete list is applied
	applied   atomic.Uint64       // odd while the processor applies a batch, or waits for handlers
	batches   histogram.Histogram // how long each batch took to apply
	indexErrs indexErrors
}

// shared has what the parts of a collection share. Each guards its own state.
type shared[T any] struct {
	*Lifecycle
	o          Options[T]
	store      *store.Store[T]
	queue      *delta.Queue[T]
	log        *fanout.Log[T]
	progress   progress
	goroutines goroutines

	// applyMu is held while a batch is applied and published, while a handler joins, while
	// namespaces or indexes are added and while a façade writes to the cache by hand. So the
	// snapshot that a handler starts from is the same state as the end of the log.
	applyMu Lock
}

// New returns a collection. Its errors are about the indexes and the namespaces.
func New[T any](o Options[T]) (*Collection[T], error) {
	o = o.withDefaults()
	life := newLifecycle(o.Name)
	s := &shared[T]{Lifecycle: life, o: o, applyMu: NewLock(), goroutines: goroutines{life: life}}
	c := &Collection[T]{
		shared: s, synced: make(chan struct{}),
		indexErrs: indexErrors{report: o.OnIndexErrors},
	}
	var err error
	s.store, err = store.New(store.Options[T]{Indexes: o.Indexes, OnIndexError: c.indexErrs.add})
	if err != nil {
		return nil, err
	}
	list, partitions := newParts[T](o.Namespaces)
	for _, partition := range partitions {
		s.progress.add(partition)
	}
	s.queue, err = delta.New(delta.Options[T]{
		Known:    func() delta.Known[T] { return o.Known(s.store.Snapshot()) },
		Describe: o.Describe, Compare: o.Compare,
		Partitions: partitions, ReportUnchanged: o.ReportUnchanged, UnknownDeletes: o.UnknownDeletes,
	})
	if err != nil {
		return nil, err
	}
	// No other option: the log outlives the cache.
	s.log = fanout.New(fanout.Options[T]{Name: life.Name, Describe: o.Describe})
	c.view = view[T]{s}
	c.late = &lateSharing[T]{
		shared: s, changed: map[string]struct{}{}, begun: make(chan struct{}, 1),
	}
	c.subscriptions = &subscriptions[T]{
		shared:    s,
		recording: &recording{informer: life.Name, rewound: make(chan struct{}, 1)},
		resyncs:   resyncs[T]{shared: s, listed: make(chan struct{}, 1)},
	}
	c.parts = &parts[T]{
		shared: s, changeMu: NewLock(), transformMu: NewLock(), list: list,
		late: c.late, recorder: recorder[T]{subscriptions: c.subscriptions},
	}
	return c, nil
}

// Store returns the cache. Only the collection writes to it, and WriteByHand.
func (c *Collection[T]) Store() *store.Store[T] { return c.store }

// Life returns the lifecycle, which does not refer to the cache.
func (c *Collection[T]) Life() *Lifecycle { return c.Lifecycle }

// Turns counts what may stand still in code of the user: the batches that are applied, and the
// calls of the transform. A counter is odd during one, so that one which stays odd hangs.
func (c *Collection[T]) Turns() (applied, transformed uint64) {
	return c.applied.Load(), c.transformed.Load()
}

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

// Await waits until done returns true, or an error. It fails with ErrStopped or ErrReleased when
// the collection ends.
func (c *Collection[T]) Await(ctx context.Context, done func() (bool, error)) error {
	return c.progress.await(ctx, func() (bool, error) {
		if err := c.Over(); err != nil {
			return false, err
		}
		return done()
	})
}

// Reflects reports whether the cache of every namespace has reached a version.
func (c *Collection[T]) Reflects(version string) bool { return c.progress.reflects(version) }

// Reached returns the version that the cache has reached for the objects of a namespace, "" before
// the first list. ok is false if the collection does not hold that namespace.
func (c *Collection[T]) Reached(namespace string) (version string, ok bool) {
	partition, ok := c.progress.of(Prefix(namespace))
	return partition.version, ok
}

// Lacks reports whether the collection holds a namespace, and its first list is not in the cache.
func (c *Collection[T]) Lacks(namespace string) bool {
	partition, ok := c.progress.of(Prefix(namespace))
	return ok && !partition.listed
}

// InSync reports whether the collection follows the server and holds a complete list of every
// namespace, also of one that was added later, and no object of one that was removed.
func (c *Collection[T]) InSync() bool {
	return c.Over() == nil && c.HasSynced() && c.progress.complete()
}

// End ends the run, and closes a collection that was never claimed. It does not wait. released
// reports whether no handle is left.
func (c *Collection[T]) End(released bool) {
	if c.end(released) {
		c.queue.Close()
		c.finish(c.stopHandlers(), stuckIn(c.log))
	}
	c.progress.wake()
}

// Run lists and watches until ctx ends, the context that Claim has returned. Its errors are
// ErrHandlersStuck, with the names of the handlers, and ErrGoexit.
func (c *Collection[T]) Run(ctx context.Context) (err error) {
	defer func() { c.finish(err, stuckIn(c.log)) }()
	c.log.Start()
	if c.o.Slots != nil {
		defer slot.Attach(c.o.Slots, c)()
	}
	if c.o.Resync.Period != nil {
		c.resyncs.period = c.o.Resync.Period()
	}
	c.goroutines.begin(ctx)
	c.resyncs.start(c.resyncs.period > 0)
	c.late.begin()
	c.parts.begin()
	for _, f := range c.o.Background {
		c.goroutines.start("background", f)
	}
	ended := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(ended)
		c.progress.wake()
		c.goroutines.end()
		c.queue.Close()
	})
	returned := false
	defer func() {
		if !returned {
			if value := recover(); value != nil {
				panic(value)
			}
			c.goroutines.endByGoexit()
		}
		<-ended
		if err = c.stopHandlers(); err == nil && c.goroutines.exited.Load() {
			err = ErrGoexit
		}
	}()
	c.label(ctx, "processor")
	defer pprof.SetGoroutineLabels(ctx)
	c.process(ctx)
	returned = true
	return nil
}
