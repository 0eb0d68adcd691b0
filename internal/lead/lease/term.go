package lease

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// Term is a time during which the holder of a Lease may write: from the success that won it to the
// fence. A closed term stays closed. Its methods may be called from any goroutine.
type Term struct {
	lease, identity string
	clock           Clock
	length          time.Duration // from the sending of a renewal to the fence
	check           time.Duration // the longest time between two looks at the clocks

	ctx   context.Context // ends when the term closes
	close context.CancelCauseFunc

	mu       sync.Mutex // guards the rest
	sent     Instant    // before the last successful renewal was sent
	renewals int
	failed   error       // of the last renewal, nil after a success
	timer    *time.Timer // closes the term at the fence
}

// NewTerm returns a term of a Lease, which is open until its fence. Its context keeps the values of
// ctx, and does not end with ctx.
func NewTerm(ctx context.Context, name, identity string, t Times, c Clock, sent Instant) *Term {
	term := &Term{
		lease: name, identity: identity, clock: c, length: t.Fence(), check: t.Duration / 15, sent: sent,
	}
	term.ctx, term.close = context.WithCancelCause(context.WithoutCancel(ctx))
	term.mu.Lock()
	term.timer = time.AfterFunc(term.check, term.tick)
	term.mu.Unlock()
	term.tick()
	return term
}

// tick closes the term at the fence. Timers stand still while the machine is suspended, so it looks
// at the clocks before the fence too.
func (t *Term) tick() {
	if left := t.Remaining(); left > 0 {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.timer.Reset(min(left, t.check))
	}
}

// Identity returns the holder that the Lease names during the term. No other term has it.
func (t *Term) Identity() string { return t.identity }

// Remaining returns the time for which the term stays open if it is not renewed; 0: it is closed.
func (t *Term) Remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remainingLocked()
}

func (t *Term) remainingLocked() time.Duration {
	if t.ctx.Err() != nil {
		return 0
	}
	left := t.length - t.clock.Since(t.sent)
	if left > 0 {
		return left
	}
	cause := ErrDeadline
	if t.failed != nil {
		cause = fmt.Errorf("%w: %w", cause, t.failed)
	}
	t.End(cause)
	return 0
}

// End closes the term, if it is open.
func (t *Term) End(cause error) {
	t.close(fmt.Errorf("term %s of the lease %s: %w", t.identity, t.lease, cause))
}

// Done is closed when the term is.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// Context returns the context that ends when the term closes, with Err as its cause.
func (t *Term) Context() context.Context { return t.ctx }

// AfterFunc calls f in a goroutine once the term is closed. stop prevents the call, and reports
// whether it has.
func (t *Term) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.ctx, f) }

// Err returns nil while the term is open, and then why it closed: an error that wraps
// [ErrDeadline], [ErrDeleted], [ErrTaken] or [ErrReleased], or the one that End was called with.
func (t *Term) Err() error {
	t.Remaining()
	return context.Cause(t.ctx)
}

// Renewed moves the fence after a renewal that was sent at a moment. It does nothing if the term is
// closed, or the fence has passed.
func (t *Term) Renewed(sent Instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.remainingLocked() > 0 {
		t.sent, t.failed = sent, nil
		t.renewals++
	}
}

func (t *Term) sinceSent() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.clock.Since(t.sent)
}

// notRenewed remembers why a renewal failed, for the error of the term.
func (t *Term) notRenewed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
}

// Renewals counts those that have succeeded.
func (t *Term) Renewals() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.renewals
}

// Loss returns why a term is over that a Lease, nil for none, does not name; nil if it does.
func (t *Term) Loss(l *Lease) error {
	switch holder := HolderOf(l); {
	case holder == t.identity:
		return nil
	case l == nil:
		return ErrDeleted
	case holder == "":
		return fmt.Errorf("%w: somebody removed the holder", ErrTaken)
	default:
		return fmt.Errorf("%w by %s", ErrTaken, holder)
	}
}
