package sharedinformer

import (
	"time"
)

// minResyncPeriod is the least resync period of a handler, by client-go's rules.
const minResyncPeriod = time.Second

// decision is the token of one decision of the resync timer: the handlers that were due,
// and the others.
type decision struct{ due, others []*registration }

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
	if asked > 0 && asked < i.resyncPeriod {
		if i.started {
			warn("Warning: a resync period was raised to that of the running informer", "period", i.resyncPeriod)
			asked = i.resyncPeriod
		} else {
			i.resyncPeriod = asked
			for _, other := range i.handlers {
				other.period = i.periodLocked(other.requested)
			}
		}
	}
	if asked > 0 && i.resyncPeriod == 0 {
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
	if requested == 0 || i.resyncPeriod == 0 {
		return 0
	}
	return max(requested, i.resyncPeriod)
}

// startResyncs returns the period of the resync timer.
func (i *Informer) startResyncs() time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.resyncPeriod
}

// dueForResync finds the handlers that are due and computes when they are due again.
func (i *Informer) dueForResync(now time.Time) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	var d decision
	for _, r := range i.handlers {
		if r.period > 0 && !now.Before(r.nextResync) {
			r.nextResync = now.Add(r.period)
			d.due = append(d.due, r)
		} else {
			d.others = append(d.others, r)
		}
	}
	return d
}

// resync replays the cache to the handlers that were due.
func (i *Informer) resync(token any) {
	d := token.(decision)
	for _, r := range d.due {
		r.syncing.Store(true)
		i.collection.Replay(r.subscription)
	}
	for _, r := range d.others {
		r.syncing.Store(false)
	}
}
