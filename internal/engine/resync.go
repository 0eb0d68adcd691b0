package engine

import (
	"context"
	"sync"
	"time"

	"github.com/tidings-go/tidings/internal/engine/fanout"
)

// ResyncRule replaces the rule by which handlers with a ResyncPeriod are resynced: a façade decides
// itself, once per period, which handlers are due.
type ResyncRule struct {
	// Period is called once, when the collection runs. The timer starts anew with every complete
	// list that is applied; 0 is no timer.
	Period func() time.Duration
	// Due returns a token, which goes through the queue.
	Due func(now time.Time) any
	// Apply receives the token when all changes before it are applied. No batch is applied
	// meanwhile.
	Apply func(token any)
}

// resyncs puts the resyncs of handlers into the queue, when they are due. The timer runs from the
// first handler that asks for resyncs until the collection stops, even if these handlers are
// removed.
type resyncs[T any] struct {
	*shared[T]
	listed chan struct{} // one token: a complete list was applied
	period time.Duration // of Options.Resync; written before the timer starts

	mu      sync.Mutex // guards the rest
	needed  bool       // a handler has asked for resyncs, or the rule has a period
	started bool       // the timer runs
}

// start starts the timer if it is needed, now or by an earlier call, and the collection runs.
func (r *resyncs[T]) start(needed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.needed = r.needed || needed; r.needed && !r.started {
		r.started = r.goroutines.start("resyncs", r.keepTime)
	}
}

// keepTime puts the resyncs of the handlers that are due into the queue.
func (r *resyncs[T]) keepTime(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	rule := time.NewTimer(time.Hour)
	rule.Stop()
	defer rule.Stop()
	for {
		var due <-chan time.Time
		if at, ok := r.log.NextResync(); ok {
			next.Reset(time.Until(at))
			due = next.C
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case <-r.log.ResyncChanged():
		case <-due:
			for _, subscription := range r.log.DueForResync(time.Now()) {
				if err = r.queue.Resync(subscription); err != nil {
					break
				}
			}
		case <-r.listed:
			if r.period > 0 {
				rule.Reset(r.period)
			}
		case <-rule.C:
			rule.Reset(r.period)
			err = r.queue.Resync(r.o.Resync.Due(time.Now()))
		}
		if err != nil {
			return // the queue is closed
		}
	}
}

// resync replays the cache to the handler of a token, or reports that a merge is applied.
func (c *Collection[T]) resync(token any) {
	switch token := token.(type) {
	case *fanout.Subscription[T]:
		c.Replay(token)
	case merged:
		close(token)
	default:
		c.o.Resync.Apply(token)
	}
}

// Replay replays the cache to a handler. It is for ResyncRule.Apply.
func (s *subscriptions[T]) Replay(subscription *fanout.Subscription[T]) {
	s.log.Replay(subscription, s.store.Snapshot().Cursor().Next)
}
