package tidings

import (
	"context"
	"math/rand/v2"
	"time"
)

// needClock has the clock of the resyncs run, as soon as the collection does. It runs until
// the collection stops, also when the handlers that asked for resyncs are gone.
func (c *collection[T]) needClock() {
	c.partsMu.Lock()
	defer c.partsMu.Unlock()
	c.resyncs = true
	c.startClockLocked()
}

// startClockLocked starts the clock if it is needed and the collection runs.
func (c *collection[T]) startClockLocked() {
	if !c.resyncs || c.clock || c.ending || c.running == nil {
		return
	}
	c.clock = true
	c.sources.Go(func() { c.keepResyncTime(c.running) })
}

// keepResyncTime puts the resyncs of the handlers into the queue when they are
// due, so that each comes in order with the changes.
func (c *collection[T]) keepResyncTime(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if next, ok := c.fan.NextResync(); ok {
			timer.Reset(time.Until(next))
			due = timer.C
		}
		select {
		case <-ctx.Done():
			return
		case <-c.fan.ResyncChanged():
		case <-due:
			for _, subscription := range c.fan.DueForResync(time.Now()) {
				if c.queue.Resync(subscription) != nil {
					return
				}
			}
		}
	}
}

// spread returns when the first resync of a handler is due: somewhere in the
// second half of its period, so that the handlers of many informers which start
// together do not resync together for ever.
func spread(period time.Duration) time.Duration {
	if period <= 1 {
		return period
	}
	return period/2 + rand.N(period/2)
}
