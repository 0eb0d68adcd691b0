package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Queue puts the events that producers report about a collection in order and hands them to one
// consumer as batches of changes. The package documentation has its rules. Create it with [New].
//
// It starts no goroutines. Producers append to segments; the goroutine in Pop takes the first
// one, and alone uses resolver.
type Queue[T any] struct {
	known    func() Known[T]
	compare  func(a, b string) (order int, ok bool)
	limit    int
	done     chan struct{} // closed by Close
	ready    chan struct{} // wakes the consumer; see idle
	resolver resolver[T]   // of the goroutine in Pop
	batch    Batch[T]      // of the goroutine in Pop, whose stack would grow for good with it

	mu         sync.Mutex // guards the rest
	closed     error      // why the queue is closed; nil while it is open
	segments   []*segment[T]
	spare      *segment[T] // an empty one whose arrays can be used again
	pending    int         // changes in segments and in the one being processed
	partitions map[string]*partition
	unlisted   int  // partitions that have not been replaced
	synced     bool // the initial set is processed
	waiters    []*waiter
	popping    bool // a Pop waits or processes
	idle       bool // the consumer waits, and ready is empty
	stale      uint64
}

// New returns an empty queue, or an error that names the option that cannot be used.
func New[T any](o Options[T]) (*Queue[T], error) {
	o, err := o.settled()
	if err != nil {
		return nil, err
	}
	q := &Queue[T]{
		known:      o.Known,
		compare:    o.Compare,
		limit:      o.Limit,
		done:       make(chan struct{}),
		ready:      make(chan struct{}, 1),
		partitions: make(map[string]*partition, len(o.Partitions)),
		resolver: resolver[T]{
			describe:        o.Describe,
			compare:         o.Compare,
			reportUnchanged: o.ReportUnchanged,
			unknownDeletes:  o.UnknownDeletes,
			deletes:         deletes{bound: o.RememberDeletes},
		},
	}
	q.addPartitionsLocked(o.Partitions...)
	return q, nil
}

// Close drops all pending changes and ends every call that waits with ErrClosed; later calls return
// it too. A batch that is being processed is not interrupted, and counts as applied when its
// process returns. Close does not wait for it and may be called more than once.
func (q *Queue[T]) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closeLocked(ErrClosed)
}

// closeLocked closes the queue for a reason that is ErrClosed, if it is open.
func (q *Queue[T]) closeLocked(reason error) {
	if q.closed != nil {
		return
	}
	q.closed = reason
	close(q.done)
	for _, s := range q.segments {
		q.pending -= s.size()
	}
	q.segments, q.spare = nil, nil
}

// Len returns the number of pending changes: events and items of lists, including those of the
// batch that is being processed. Healthy is far below Options.Limit.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}

// Stale returns the number of events and items that were dropped because they said nothing new:
// older than the known state, sent again, or the delete of an unknown key. Unchanged objects of
// a Replace do not count. A few after a reconnect are normal.
func (q *Queue[T]) Stale() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stale
}

// Pop waits until something is pending, takes everything up to the next Replace or Resync, or
// one Replace, resolves it against the known state and calls process with the batch. Only after
// process has returned does Len fall. A batch with nothing in it is skipped without a call.
// Errors: ErrClosed, ErrBusy, or that of the context, which is not looked at again once a batch
// is taken. process must not wait for the queue: no Pop, and nothing that waits for room. The
// package documentation describes what happens if it panics.
func (q *Queue[T]) Pop(ctx context.Context, process func(*Batch[T])) error {
	if process == nil {
		return errors.New("delta: Pop without a process function")
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.popping {
		return ErrBusy
	}
	q.popping = true
	defer func() { q.popping = false }()
	for {
		s, err := q.takeLocked(ctx)
		if err != nil {
			return err
		}
		if q.processLocked(s, process) {
			return nil
		}
	}
}

// takeLocked waits for a segment and takes it; the lock is free while it waits.
func (q *Queue[T]) takeLocked(ctx context.Context) (*segment[T], error) {
	for {
		if q.closed != nil {
			return nil, q.closed
		}
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("delta: pop: %w", err)
		}
		if len(q.segments) > 0 {
			s := q.segments[0]
			q.segments = slices.Delete(q.segments, 0, 1)
			return s, nil
		}
		q.idle = true
		q.mu.Unlock()
		select {
		case <-q.ready:
		case <-q.done:
		case <-ctx.Done():
		}
		q.mu.Lock()
		if q.idle {
			q.idle = false
			continue
		}
		select {
		case <-q.ready: // a producer signalled while something else ended the wait
		default:
		}
	}
}

// processLocked resolves a taken segment and calls process, with the lock free meanwhile, and then
// notes that the batch is applied. It reports whether process was called. If resolving or
// processing panics, the queue is closed.
func (q *Queue[T]) processLocked(s *segment[T], process func(*Batch[T])) (called bool) {
	listed := s.unlisted()
	b := &q.batch
	*b = Batch[T]{
		Marks: s.marks, Resync: s.tokens, Replaced: s.list != nil,
		Synced: !q.synced && q.unlisted == listed,
	}
	initial := !q.synced && listed > 0
	q.mu.Unlock()
	returned := false
	defer func() {
		if !returned {
			q.mu.Lock()
			q.closeLocked(fmt.Errorf("%w: the processing of a batch of %d changes "+
				"did not return; it panicked", ErrClosed, s.size()))
		}
	}()
	r := &q.resolver
	r.known = q.known()
	switch {
	case s.list != nil:
		b.Changes = r.replace(s.list, initial)
	case len(s.removal) > 0:
		for _, p := range s.removal {
			b.Removed = append(b.Removed, p.prefix)
		}
		b.Changes = r.remove(b.Removed)
	case s.leaves != nil:
		b.Changes = r.leave(s.leaves)
	default:
		b.Changes = r.run(s)
	}
	b.Unusable = r.unusable.begun
	if called = !b.empty(); called {
		process(b)
	}
	stale := r.end()
	returned = true
	q.mu.Lock()
	q.stale += stale
	q.unlisted -= listed
	q.commitLocked(s, b.Synced)
	*b = Batch[T]{}
	return called
}

// commitLocked notes that a batch is applied.
func (q *Queue[T]) commitLocked(s *segment[T], synced bool) {
	q.pending -= s.size()
	if s.list != nil {
		s.list.partition.replaced = true
	}
	q.synced = q.synced || synced
	if s.recycle() && q.closed == nil {
		q.spare = s
	}
	q.wakeProducerLocked()
}
