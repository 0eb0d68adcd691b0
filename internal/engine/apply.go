package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/store"
)

// process applies the batches of the queue until it is closed or ctx ends.
func (c *Collection[T]) process(ctx context.Context) {
	epoch := time.Now()
	apply := func(batch *delta.Batch[T]) {
		began := time.Since(epoch)
		c.applied.Add(1)
		c.apply(batch)
		c.applied.Add(1)
		c.batches.Observe(time.Since(epoch) - began)
	}
	if m := c.o.Metrics; m != nil {
		timed := apply
		apply = func(batch *delta.Batch[T]) { m.Batch(func() { timed(batch) }) }
	}
	for {
		c.applied.Add(1)
		err := c.log.AwaitRoom(ctx)
		c.applied.Add(1)
		if err == nil {
			err = c.queue.Pop(ctx, apply)
		}
		if err != nil {
			return
		}
		if c.o.Metrics != nil {
			c.o.Metrics.Reached(c.queue.Len(), c.store.Snapshot().Version())
		}
	}
}

// apply writes a batch to the cache and publishes it. The façade's callbacks come last, without a
// lock: they may use the collection.
func (c *Collection[T]) apply(batch *delta.Batch[T]) {
	c.write(batch)
	c.indexErrs.reportNew()
	if len(batch.Unusable) > 0 && c.o.OnUndecodable != nil {
		c.o.OnUndecodable(batch.Unusable)
	}
	if batch.Synced && c.o.OnSynced != nil {
		c.o.OnSynced()
	}
}

func (c *Collection[T]) write(batch *delta.Batch[T]) {
	c.applyMu.Lock()
	defer c.applyMu.Unlock()
	if c.o.BeforeApply != nil {
		c.o.BeforeApply(batch)
	}
	c.writeStore(batch)
	if !batch.Replaced {
		c.late.note(batch.Changes)
	}
	if c.o.Observe != nil {
		c.o.Observe(batch.Changes)
	}
	if len(batch.Changes) > 0 {
		c.log.Publish(batch.Changes, c.store.Len())
	}
	if batch.Synced {
		c.log.MarkSynced()
		close(c.synced)
	}
	for _, token := range batch.Resync {
		c.resync(token)
	}
	if batch.Replaced {
		select {
		case c.resyncs.listed <- struct{}{}:
		default:
		}
	}
	c.progress.wake()
}

func (c *Collection[T]) writeStore(batch *delta.Batch[T]) {
	partitions, version := c.progress.after(batch.Removed, batch.Replaced, batch.Marks)
	c.store.Update(func(b *store.Batch[T]) {
		for i := range batch.Changes {
			d := &batch.Changes[i]
			switch {
			case d.Type == change.Deleted:
				b.Delete(d.Key)
			case d.Unchanged && areSame(d.Old, d.New): // the list has the cached object
			default:
				b.Set(d.Key, d.New)
			}
		}
		if len(batch.Marks)+len(batch.Removed) > 0 {
			b.SetVersion(version)
		}
	})
	c.progress.reached(partitions)
}

// WriteByHand calls write, which changes the cache for the program, and returns the failures of
// index functions. No batch is applied meanwhile, and no handler receives the change.
func (c *Collection[T]) WriteByHand(write func(*store.Store[T])) []store.IndexError {
	c.applyMu.Lock()
	defer c.applyMu.Unlock()
	c.indexErrs.divert()
	defer c.indexErrs.takeDiverted() // also if write panics
	write(c.store)
	return c.indexErrs.takeDiverted()
}

// AddIndex adds an index, as [store.Store.AddIndex] does.
func (c *Collection[T]) AddIndex(id any, f store.IndexFunc[T]) error {
	defer c.indexErrs.reportNew()
	c.applyMu.Lock() // its failures are none of a write by hand
	defer c.applyMu.Unlock()
	return c.store.AddIndex(id, f)
}

// indexErrors keeps failures of index functions, which the store counts.
type indexErrors struct {
	report func([]store.IndexError) // Options.OnIndexErrors

	mu         sync.Mutex // guards the rest
	last       error
	unreported []store.IndexError
	diverted   bool               // the program writes
	ofProgram  []store.IndexError // its failures
}

func (e *indexErrors) add(err store.IndexError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.last = err
	if e.diverted {
		e.ofProgram = append(e.ofProgram, err)
		return
	}
	e.unreported = append(e.unreported, err)
}

func (e *indexErrors) lastError() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

// divert begins a write of the program, whose failures it gets itself.
func (e *indexErrors) divert() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.diverted = true
}

// takeDiverted ends a write of the program, and returns its failures.
func (e *indexErrors) takeDiverted() (failures []store.IndexError) {
	e.mu.Lock()
	defer e.mu.Unlock()
	failures, e.ofProgram, e.diverted = e.ofProgram, nil, false
	return failures
}

// reportNew reports the failures since the last call.
func (e *indexErrors) reportNew() {
	e.mu.Lock()
	failures := e.unreported
	e.unreported = nil
	e.mu.Unlock()
	if len(failures) > 0 && e.report != nil {
		e.report(failures)
	}
}
