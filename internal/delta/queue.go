package delta

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Queue puts what producers report about a collection in order and hands it to one consumer as batches of deltas. See
// the package documentation for its rules. Create it with [New].
//
// It starts no goroutines. Segments are appended to by producers; the first one is taken by the goroutine in Pop, which alone uses resolver.
type Queue[T any] struct {
	known     func() Known[T]
	compare   func(a, b string) (order int, ok bool)
	foldAbove int
	limit     int
	synced    chan struct{} // closed once the initial set is processed
	done      chan struct{} // closed by Close
	ready     chan struct{} // wakes the consumer; see idle
	resolver  resolver[T]   // of the goroutine in Pop

	mu          sync.Mutex // guards the rest
	closed      error      // why the queue is closed; nil while it is open
	segments    []*segment[T]
	taken       *segment[T] // being processed; its changes are not written while it stands here
	spare       *segment[T] // an empty one whose arrays can be used again
	pending     int         // changes in segments and taken
	scopes      map[string]*scope
	unsynced    int     // scopes that have not been replaced
	indexes     int32   // of scopes in use or free, into resolver.listed
	freeIndexes []int32 // of scopes that are gone
	waiters     []*waiter
	popping     bool // a Pop waits or processes
	idle        bool // the consumer waits, and ready is empty
	stale       uint64
	folded      uint64
}

// New returns an empty queue, or an error that names the option that cannot be used.
func New[T any](o Options[T]) (*Queue[T], error) {
	o, err := o.settled()
	if err != nil {
		return nil, err
	}
	q := &Queue[T]{
		known:     o.Known,
		compare:   o.Compare,
		foldAbove: o.FoldAbove,
		limit:     o.Limit,
		synced:    make(chan struct{}),
		done:      make(chan struct{}),
		ready:     make(chan struct{}, 1),
		scopes:    make(map[string]*scope, len(o.Scopes)),
		unsynced:  len(o.Scopes),
		resolver: resolver[T]{
			describe:        o.Describe,
			compare:         o.Compare,
			reportUnchanged: o.ReportUnchanged,
			deletes:         deletes{bound: o.RememberDeletes},
			listed:          make([]string, len(o.Scopes)),
		},
	}
	for i, s := range o.Scopes {
		q.scopes[s] = &scope{prefix: s, index: int32(i)}
	}
	q.indexes = int32(len(o.Scopes))
	return q, nil
}

// Close drops what is pending and ends every call that waits with ErrClosed; later calls return it too. A batch that is being processed is not
// interrupted, and counts as applied when its process returns. Close does not wait for it and may be called more than once.
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

// HasSynced reports whether the initial set has been processed: every scope has been replaced once.
func (q *Queue[T]) HasSynced() bool {
	select {
	case <-q.synced:
		return true
	default:
		return false
	}
}

// Synced returns a channel that is closed when HasSynced becomes true.
func (q *Queue[T]) Synced() <-chan struct{} { return q.synced }

// Version returns the version that the processed batches of a scope have reached, "" before the first one.
func (q *Queue[T]) Version(scope string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	if sc := q.scopes[scope]; sc != nil {
		return sc.applied
	}
	return ""
}

// Len returns the number of pending changes: watch events and items of lists, including those of the batch that is being processed.
// Healthy is far below Options.FoldAbove.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.pending
}

// Stale returns the number of changes and items that were dropped because they said nothing new: older than the
// known state, sent again, or the delete of an unknown key. Unchanged objects of a Replace do not count. A few after a reconnect are normal.
func (q *Queue[T]) Stale() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.stale
}

// Folded returns the number of updates that were folded into a newer one. It stays 0 while the consumer keeps up.
func (q *Queue[T]) Folded() uint64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.folded
}

// List returns the pending changes in order, those of the batch that is being processed first. Deletes that a pending Replace will find are not known yet and not
// among them. It copies; for looking inside, not for a hot path.
func (q *Queue[T]) List() []Queued[T] {
	return q.list(func(string) bool { return true })
}

// Get returns the pending changes of one key, as List does.
func (q *Queue[T]) Get(key string) []Queued[T] {
	return q.list(func(k string) bool { return k == key })
}

func (q *Queue[T]) list(match func(key string) bool) []Queued[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var out []Queued[T]
	collect := func(s *segment[T], taken bool) {
		for i := range s.changes {
			if e := &s.changes[i]; match(e.Key) {
				out = append(out, Queued[T]{Event: Event[T]{e.Type, e.Item}, Taken: taken})
			}
		}
		if s.list == nil {
			return
		}
		for _, item := range s.list.items {
			if match(item.Key) {
				out = append(out, Queued[T]{Event: Event[T]{Set, item}, Replace: true, Taken: taken})
			}
		}
	}
	if q.taken != nil {
		collect(q.taken, true)
	}
	for _, s := range q.segments {
		collect(s, false)
	}
	return out
}

// Pop waits until something is pending, takes everything up to the next Replace or Resync, or one Replace, resolves it against the known
// state and calls process with the batch. Only after process has returned are versions, Synced and Len moved. What turns out to
// say nothing at all is passed over without a call. Errors: ErrClosed, ErrBusy, or that of the context, which is not looked at again once a batch is taken.
// process must not wait for the queue: no Pop, and nothing that waits for room. See the package documentation for one that panics.
func (q *Queue[T]) Pop(ctx context.Context, process func(Batch[T])) error {
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
			q.taken = q.segments[0]
			q.segments = slices.Delete(q.segments, 0, 1)
			return q.taken, nil
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

// processLocked resolves a taken segment and hands it on, with the lock free meanwhile, and then moves what the batch has reached. It
// reports whether process was called. If resolving or processing panics, the queue is closed.
func (q *Queue[T]) processLocked(s *segment[T], process func(Batch[T])) (called bool) {
	b := Batch[T]{Marks: s.marks, Resync: s.tokens}
	last := q.unsynced == 1 && !q.HasSynced()
	initial := false
	switch {
	case s.list != nil:
		b.Replaced = true
		b.Synced = last && !s.list.scope.replaced
		initial = !s.list.scope.replaced && !q.HasSynced()
	case len(s.removal) > 0:
		unlisted := 0
		for _, sc := range s.removal {
			b.Removed = append(b.Removed, sc.prefix)
			if !sc.replaced {
				unlisted++
			}
		}
		b.Synced = !q.HasSynced() && q.unsynced == unlisted
	}
	q.mu.Unlock()
	returned := false
	defer func() {
		if !returned {
			q.mu.Lock()
			q.closeLocked(fmt.Errorf("%w: the processing of a batch of %d changes did not return; it panicked", ErrClosed, s.size()))
		}
	}()
	r := &q.resolver
	r.begin(q.known())
	switch {
	case s.list != nil:
		b.Changes = r.replace(s.list, initial)
	case len(s.removal) > 0:
		b.Changes = r.removeScopes(s.removal)
	default:
		b.Changes = r.run(s.changes)
	}
	if called = b.says(); called {
		process(b)
	}
	stale := r.end()
	returned = true
	q.mu.Lock()
	q.stale += stale
	q.commitLocked(s, b.Synced)
	return called
}

// commitLocked notes that a batch is applied.
func (q *Queue[T]) commitLocked(s *segment[T], synced bool) {
	q.taken = nil
	q.pending -= s.size()
	for i, m := range s.marks {
		s.marked[i].applied = m.Version
	}
	for _, sc := range s.removal {
		q.removedLocked(sc)
	}
	if s.list != nil && !s.list.scope.replaced {
		s.list.scope.replaced = true
		q.unsynced--
	}
	if synced {
		close(q.synced)
	}
	if s.recycle() && q.closed == nil {
		q.spare = s
	}
	q.wakeProducerLocked()
}
