package tidings

import (
	"context"
	"sync"
)

// life is the one run of a collection, from the time that it was asked for to its end.
//
//	asked for ──claim──▶ running ──context, end──▶ ending ──finish──▶ ended
//	    └─────────end──────────────────────────────▶┘
//
// It is apart from the collection so that waiting for the end does not hold the cache.
type life struct {
	name string

	mu       sync.Mutex         // guards the rest; no other lock is taken under it
	term     context.Context    // that of the claim; nil before
	ctx      context.Context    // ends with term and with end
	cancel   context.CancelFunc // of ctx
	unrun    bool               // it ended before a claim
	released bool               // its last handle was given back

	ended chan struct{} // closed by finish
	err   error         // of the run; written before ended is closed
	stuck func() bool   // whether a handler that err names has not returned yet; as err
}

func newLife(name string) *life { return &life{name: name, ended: make(chan struct{})} }

// claim takes the one right to run, until the context that it returns ends.
func (l *life) claim(term context.Context) (context.Context, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.unrun:
		return nil, informerError(l.name, ErrStopped)
	case l.term != nil:
		return nil, informerError(l.name, ErrRanAlready)
	}
	l.term = term
	l.ctx, l.cancel = context.WithCancel(term)
	return l.ctx, nil
}

// end ends the run. If the collection was never claimed, it never will be: end returns true,
// and the caller closes the collection and calls finish.
func (l *life) end(released bool) (unrun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.released = l.released || released
	if l.term != nil {
		l.cancel()
		return false
	}
	unrun, l.unrun = !l.unrun, true
	return unrun
}

// finish says that nothing runs any more but handlers that err names. stuck reports whether
// they still do; it must not hold the cache.
func (l *life) finish(err error, stuck func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancel != nil {
		l.cancel()
	}
	l.err, l.stuck = err, stuck
	close(l.ended)
}

// started reports whether the collection was claimed.
func (l *life) started() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.term != nil
}

// over returns why the collection does not follow the server any more: ErrReleased,
// ErrStopped, or nil if it does or will. The context that it was claimed with counts from
// its end on, even if it takes a while to end those made of it.
func (l *life) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.released:
		return ErrReleased
	case l.unrun, l.term != nil && (l.term.Err() != nil || l.ctx.Err() != nil):
		return ErrStopped
	}
	return nil
}

// settled reports whether the collection has ended and its handlers have returned.
func (l *life) settled() bool { return l.hasEnded() && (l.err == nil || !l.stuck()) }

// hasEnded reports whether nothing runs any more.
func (l *life) hasEnded() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}
