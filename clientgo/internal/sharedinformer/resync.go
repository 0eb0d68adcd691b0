package sharedinformer

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/internal/fanout"
)

// minResyncPeriod is the least resync period of a handler, by client-go's rules.
const minResyncPeriod = time.Second

// look is the token of one look of the resync clock: the handlers that were due, and
// the others.
type look struct{ due, others []*registration }

// scheduleLocked works out the resync period of a new handler by client-go's rules: at
// least a second; before the informer runs, the shortest period asked for becomes that
// of the clock; afterwards, none is shorter than that of the clock. A clock that does
// not run leaves every handler without resyncs. It returns what is to be said of that to
// the handler's logger, which may ask the informer in turn: without the lock.
func (i *Informer) scheduleLocked(r *registration, asked time.Duration) (warnings []warning) {
	warn := func(text string, pairs ...any) {
		warnings = append(warnings, warning{text, append([]any{"type", i.name, "asked", asked}, pairs...)})
	}
	if asked > 0 && asked < minResyncPeriod {
		warn("Warning: a resync period was raised to the least one", "period", minResyncPeriod)
		asked = minResyncPeriod
	}
	if asked > 0 && asked < i.resyncCheck {
		if i.started {
			warn("Warning: a resync period was raised to that of the running informer", "period", i.resyncCheck)
			asked = i.resyncCheck
		} else {
			i.resyncCheck = asked
			for _, other := range i.handlers {
				other.period = i.periodLocked(other.requested)
			}
		}
	}
	if asked > 0 && i.resyncCheck == 0 {
		warn("Warning: a resync period is ignored: the informer was made without one and does no resyncs")
	}
	r.requested = asked
	r.period = i.periodLocked(asked)
	r.nextResync = time.Now().Add(r.period)
	return warnings
}

// warning is a line of a log.
type warning struct {
	text  string
	pairs []any
}

// periodLocked returns the period that a handler gets.
func (i *Informer) periodLocked(requested time.Duration) time.Duration {
	if requested == 0 || i.resyncCheck == 0 {
		return 0
	}
	return max(requested, i.resyncCheck)
}

// keepResyncTime looks at the handlers once per period, counted from the last complete
// list, and puts the resync of those that are due into the queue, so that it comes in
// order with the changes. It also brings the resyncs that a handler missed while it
// was behind.
func (i *Informer) keepResyncTime(ctx context.Context, period time.Duration) {
	var tick <-chan time.Time
	var timer *time.Timer
	if period > 0 {
		timer = time.NewTimer(period)
		timer.Stop()
		defer timer.Stop()
		tick = timer.C
	}
	for {
		var token any
		select {
		case <-ctx.Done():
			return
		case <-i.listed:
			if timer != nil {
				timer.Reset(period)
			}
			continue
		case <-i.fan.ResyncChanged():
			token = i.fan.DueForResync(time.Now())
		case <-tick:
			timer.Reset(period)
			token = i.look(time.Now())
		}
		if i.queue.Resync(token) != nil {
			return
		}
	}
}

// look finds the handlers that are due and works out when they are due again.
func (i *Informer) look(now time.Time) look {
	i.mu.Lock()
	defer i.mu.Unlock()
	var l look
	for _, r := range i.handlers {
		if r.period > 0 && !now.Before(r.nextResync) {
			r.nextResync = now.Add(r.period)
			l.due = append(l.due, r)
		} else {
			l.others = append(l.others, r)
		}
	}
	return l
}

// resync replays the cache to whom a token is about. It is called with writing held.
func (i *Informer) resync(token any) {
	switch t := token.(type) {
	case look:
		for _, r := range t.due {
			r.syncing.Store(true)
			i.fan.Replay(r.subscription, i.store.Snapshot().Cursor().Next)
		}
		for _, r := range t.others {
			r.syncing.Store(false)
		}
	case []*fanout.Subscription[any]:
		for _, s := range t {
			i.fan.Replay(s, i.store.Snapshot().Cursor().Next)
		}
	}
}
