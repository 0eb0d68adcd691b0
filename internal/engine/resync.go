package engine

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/internal/engine/fanout"
)

// ResyncRule replaces the rule by which handlers with a ResyncPeriod are resynced: a
// façade decides itself, once per period, which handlers are due.
type ResyncRule struct {
	// Period is called once, when the collection runs. The timer starts anew with every
	// complete list that is applied; 0 is no timer.
	Period func() time.Duration
	// Due returns a token, which goes through the queue.
	Due func(now time.Time) any
	// Apply receives the token when all changes before it are applied. No batch is applied
	// meanwhile.
	Apply func(token any)
}

// needResyncTimer starts the timer as soon as the collection runs. It runs until the
// collection stops, even if the handlers that asked for resyncs are removed.
func (c *Collection[T]) needResyncTimer() {
	c.parts.mu.Lock()
	defer c.parts.mu.Unlock()
	c.parts.resyncs = true
	c.startResyncTimerLocked()
}

// startResyncTimerLocked starts the timer if it is needed and the collection runs.
func (c *Collection[T]) startResyncTimerLocked() {
	p := &c.parts
	if !p.resyncs || p.resyncTimer || p.ending || p.running == nil {
		return
	}
	p.resyncTimer = true
	ctx := p.running
	c.start(ctx, "resyncs", c.keepResyncTime)
}

// keepResyncTime puts the resyncs of the handlers that are due into the queue.
func (c *Collection[T]) keepResyncTime(ctx context.Context) {
	next := time.NewTimer(0)
	defer next.Stop()
	rule := time.NewTimer(time.Hour)
	rule.Stop()
	defer rule.Stop()
	for {
		var due <-chan time.Time
		if at, ok := c.log.NextResync(); ok {
			next.Reset(time.Until(at))
			due = next.C
		}
		var err error
		select {
		case <-ctx.Done():
			return
		case <-c.log.ResyncChanged():
		case <-due:
			for _, subscription := range c.log.DueForResync(time.Now()) {
				if err = c.queue.Resync(subscription); err != nil {
					break
				}
			}
		case <-c.listed:
			if c.resyncPeriod > 0 {
				rule.Reset(c.resyncPeriod)
			}
		case <-rule.C:
			rule.Reset(c.resyncPeriod)
			err = c.queue.Resync(c.o.Resync.Due(time.Now()))
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
func (c *Collection[T]) Replay(subscription *fanout.Subscription[T]) {
	c.log.Replay(subscription, c.store.Snapshot().Cursor().Next)
}
