package engine

import (
	"context"
	"slices"
	"sync"
)

// Lifecycle is the one run of a collection, from its construction to its end.
//
//	new ──Claim──▶ running ──context, end──▶ ending ──finish──▶ ended
//	 └───────────end──────────────────────────▶┘
//
// Outlast makes the run go on after its context, but not after end. The lifecycle is apart from the
// collection, so that waiting for the end does not hold the cache.
type Lifecycle struct {
	mu       sync.Mutex              // guards the rest; no other lock is taken under it
	name     string                  // of the collection
	term     context.Context         // of the claim; nil before
	ctx      context.Context         // ends after term and outlasts, and with end
	cancel   context.CancelCauseFunc // of ctx
	outlasts []context.Context       // that the run waits for after the end of term
	unwatch  []func() bool           // stop the calls of expire
	unrun    bool                    // it ended before a claim
	released bool                    // its last handle was given back

	ended chan struct{} // closed by finish
	err   error         // of the run; written before ended is closed
	stuck func() bool   // reports whether a handler that err names still runs; as err
}

func newLifecycle(name string) *Lifecycle {
	return &Lifecycle{name: name, ended: make(chan struct{})}
}

// Name returns the present name of the collection.
func (l *Lifecycle) Name() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

// Rename names the collection anew, as when its namespaces have changed.
func (l *Lifecycle) Rename(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name = name
}

// Claim takes the one right to run the collection, until the context that it returns ends. Errors:
// ErrRanAlready, ErrStopped.
func (l *Lifecycle) Claim(term context.Context) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unrun:
		return nil, ErrStopped
	case l.term != nil:
		return nil, ErrRanAlready
	}
	l.term = term
	l.ctx, l.cancel = context.WithCancelCause(context.WithoutCancel(term))
	if l.hasExpiredLocked() { // at once: a run whose context has ended asks the server for nothing
		l.cancel(context.Cause(term))
	}
	l.unwatch = append(l.unwatch, context.AfterFunc(term, l.expire))
	return l.ctx, nil
}

// Outlast makes the run go on after the end of its context until another one has ended too. It does
// nothing once the run has ended.
func (l *Lifecycle) Outlast(other context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasExpiredLocked() || l.HasEnded() || slices.Contains(l.outlasts, other) {
		return
	}
	l.outlasts = append(l.outlasts, other)
	l.unwatch = append(l.unwatch, context.AfterFunc(other, l.expire))
}

// hasExpiredLocked reports whether all contexts that the run waits for have ended.
func (l *Lifecycle) hasExpiredLocked() bool {
	goesOn := func(other context.Context) bool { return other.Err() == nil }
	return l.term != nil && l.term.Err() != nil && !slices.ContainsFunc(l.outlasts, goesOn)
}

// expire ends the run if no context that it waits for goes on.
func (l *Lifecycle) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hasExpiredLocked() {
		l.cancel(context.Cause(l.term))
	}
}

// end ends the run. The first call returns true for a collection that was not claimed and cannot be
// any more: the caller then closes the collection and calls finish.
func (l *Lifecycle) end(released bool) (unrun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = l.released || released
	if l.term != nil {
		l.cancel(nil)
		return false
	}
	unrun, l.unrun = !l.unrun, true
	return unrun
}

// finish notes that nothing runs any more but the handlers that err names. stuck reports whether
// they still do; it must not refer to the cache.
func (l *Lifecycle) finish(err error, stuck func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel(nil)
	}
	for _, unwatch := range l.unwatch {
		unwatch()
	}
	l.err, l.stuck = err, stuck
	close(l.ended)
}

// Started reports whether the collection was claimed.
func (l *Lifecycle) Started() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil
}

// Over returns why the collection does not follow the server any more: ErrReleased, ErrStopped, or
// nil if it does or will. The end of the last context that it waits for counts at once, even if the
// contexts made of it end later.
func (l *Lifecycle) Over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.released:
		return ErrReleased
	case l.unrun, l.hasExpiredLocked(), l.ctx != nil && l.ctx.Err() != nil:
		return ErrStopped
	}
	return nil
}

// Ended is closed when nothing runs any more, but for the handlers that Err names.
func (l *Lifecycle) Ended() <-chan struct{} { return l.ended }

// HasEnded reports whether Ended is closed.
func (l *Lifecycle) HasEnded() bool { return isClosed(l.ended) }

// Err returns the error of the run. It may be called once Ended is closed.
func (l *Lifecycle) Err() error { return l.err }

// Settled reports whether the collection has ended and its handlers have returned.
func (l *Lifecycle) Settled() bool { return l.HasEnded() && (l.err == nil || !l.stuck()) }
