package sharedinformer

import "time"

const (
	// minResyncPeriod is the least resync period of a handler, by client-go's rules.
	minResyncPeriod = time.Second
	// minTimerPeriod is that of the resync timer. A shorter one keeps the processor busy.
	minTimerPeriod = time.Millisecond
)

// decision is a decision of the resync timer: the handlers that were due, and the others. It
// goes through the delta queue as a token.
type decision struct{ due, others []*registration }

// scheduleLocked computes the resync period of a new handler by client-go's rules. It is at
// least a second. Before Run, the shortest period that a handler requests becomes the period of
// the resync timer; after Run, no period is shorter than that of the timer. An informer without
// a resync period has no timer, and its handlers receive no resyncs. The result logs warnings
// to the handler's logger.
func (i *Informer) scheduleLocked(r *registration, requested time.Duration) (warnings []func()) {
	warn := func(text string, pairs ...any) {
		pairs = append([]any{"informer", i.name, "handler", handlerName(r.handler), "asked", requested}, pairs...)
		warnings = append(warnings, func() { r.logger.Info(text, pairs...) })
	}
	if requested > 0 && requested < minResyncPeriod {
		warn("Warning: a resync period was raised to the least one", "period", minResyncPeriod)
		requested = minResyncPeriod
	}
	if requested > 0 && requested < i.resyncPeriod {
		if i.started {
			warn("Warning: a resync period was raised to that of the running informer", "period",
				i.resyncPeriod)
			requested = i.resyncPeriod
		} else {
			i.resyncPeriod = requested
			for _, other := range i.handlers {
				other.period = i.periodLocked(other.requested)
			}
		}
	}
	if requested > 0 && i.resyncPeriod == 0 {
		warn("Warning: a resync period is ignored: the informer was made without one and does no resyncs")
	}
	r.requested, r.period = requested, i.periodLocked(requested)
	r.nextResync = time.Now().Add(r.period)
	return warnings
}

// periodLocked returns the resync period of a handler that requests one.
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
	if i.resyncPeriod > 0 {
		return max(i.resyncPeriod, minTimerPeriod)
	}
	return i.resyncPeriod
}

// dueForResync finds the handlers that are due, and computes the time at which they are due
// again.
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
