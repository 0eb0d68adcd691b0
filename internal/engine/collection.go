package engine

import (
	"context"
	"fmt"
	"runtime/pprof"
	"sync/atomic"
	"time"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/store"
)

// Collection is a watched, cached and fanned-out collection.
//
// Its goroutines belong to Run, which waits for all of them, and start makes them: a reflector per
// namespace, which also ends when the namespace is removed, with a goroutine for slots that come, the
// sharing of what has not changed, the resync timer and the functions of Options.Background. The goroutine that called Run is the processor. The goroutines
// of the handlers belong to the log, which Run closes last.
type Collection[T any] struct {
	*Lifecycle
	o Options[T]

	store    *store.Store[T]
	queue    *delta.Queue[T]
	log      *fanout.Log[T]
	progress progress
	parts    parts[T]
	late     lateSharing[T]

	// applyMu is held while a batch is applied and published, while a handler joins, while
	// namespaces or indexes are added and while a façade writes to the cache by hand. So the snapshot
	// that a handler starts from is the same state as the end of the log.
	applyMu Lock

	transformMu Lock // held while the transform of the user runs; no other lock is taken under it

	applied     atomic.Uint64 // odd while the processor applies a batch, or waits for handlers
	transformed atomic.Uint64 // odd while the transform of the user runs

	synced  chan struct{} // closed when the first complete list is applied
	listed  chan struct{} // one token: a complete list was applied
	stopped atomic.Bool   // handlers are not called any more
	exited  atomic.Bool   // a callback has called runtime.Goexit

	resyncPeriod time.Duration // of Options.Resync; written before the timer starts
	indexErrs    indexErrors
	batches      histogram.Histogram // how long each batch took to apply
	recording    *recording
}

// New returns a collection. Its errors are those of the indexes and the namespaces.
func New[T any](o Options[T]) (*Collection[T], error) {
	o = o.withDefaults()
	c := &Collection[T]{
		Lifecycle: newLifecycle(o.Name), o: o, applyMu: NewLock(), transformMu: NewLock(),
		synced: make(chan struct{}), listed: make(chan struct{}, 1),
		late: lateSharing[T]{changed: map[string]struct{}{}, begun: make(chan struct{}, 1)},
	}
	c.recording = newRecording(c.Lifecycle.Name)
	c.parts.changeMu = NewLock()
	var partitions []string
	c.parts.list, partitions = newParts[T](o.Namespaces)
	for _, partition := range partitions {
		c.progress.add(partition)
	}
	var err error
	c.store, err = store.New(store.Options[T]{Indexes: o.Indexes, OnIndexError: c.indexErrs.add})
	if err != nil {
		return nil, err
	}
	c.queue, err = delta.New(delta.Options[T]{
		Known:    func() delta.Known[T] { return o.Known(c.store.Snapshot()) },
		Describe: o.Describe, Compare: o.Compare,
		Partitions: partitions, ReportUnchanged: o.ReportUnchanged, UnknownDeletes: o.UnknownDeletes,
	})
	if err != nil {
		return nil, err
	}
	// No other option: the log outlives the cache.
	c.log = fanout.New(fanout.Options[T]{Name: c.Lifecycle.Name, Describe: o.Describe})
	return c, nil
}

// Store returns the cache. Only the collection writes to it, and WriteByHand.
func (c *Collection[T]) Store() *store.Store[T] { return c.store }

// Life returns the lifecycle, which does not refer to the cache.
func (c *Collection[T]) Life() *Lifecycle { return c.Lifecycle }

// Turns counts what may stand still in code of the user: the batches that are applied, and the calls of the
// transform. A counter is odd during one, so that one which stays odd hangs.
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

// IsStopped reports whether the collection has stopped calling its handlers.
func (c *Collection[T]) IsStopped() bool { return c.stopped.Load() }

// End ends the run, and closes a collection that was never claimed. It does not wait.
// released reports whether no handle is left.
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
func stuckIn[T any](log *fanout.Log[T]) func() bool {
	return func() bool { return len(log.Subscriptions()) > 0 }
}

// stopHandlers drops the pending notifications and waits for the running calls.
func (c *Collection[T]) stopHandlers() error {
	c.applyMu.Lock()
	c.stopped.Store(true)
	c.log.Close()
	c.applyMu.Unlock()
	c.progress.wake()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), c.o.StopGrace)
		err := c.log.Wait(ctx)
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
