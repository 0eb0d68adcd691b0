package election

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"
)

// Term is a time during which its holder may write: from the success that won the Lease to the
// fence. A closed term stays closed. Its methods may be called from any goroutine.
type Term struct {
	lease, identity string
	clock           clock
	length          time.Duration // from the sending of a renewal to the fence
	check           time.Duration // the longest time between two looks at the clocks

	ctx   context.Context // ends when the term closes
	close context.CancelCauseFunc

	received map[string]string // by the last holder; nil if it left nothing

	mu       sync.Mutex // guards the rest
	sent     instant    // before the last successful renewal was sent
	renewals int
	failed   error // of the last renewal, nil after a success
	left     map[string]string
	timer    *time.Timer // closes the term at the fence
}

// newTerm returns a term, which is open until its fence. Its context keeps the values of ctx, and
// does not end with ctx.
func (e *Elector) newTerm(ctx context.Context, identity string, sent instant,
	received map[string]string) *Term {
	t := &Term{
		lease: e.o.Namespace + "/" + e.o.Name, identity: identity, clock: e.clock,
		length: e.o.fence(), check: e.o.Duration / 15, received: received, sent: sent,
	}
	t.ctx, t.close = context.WithCancelCause(context.WithoutCancel(ctx))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(0, t.tick)
	return t
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

// Remaining returns how long the term stays open if it is not renewed; 0: it is closed.
func (t *Term) Remaining() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.remainingLocked()
}

func (t *Term) remainingLocked() time.Duration {
	if t.ctx.Err() != nil {
		return 0
	}
	left := t.length - t.clock.since(t.sent)
	if left > 0 {
		return left
	}
	cause := ErrDeadline
	if t.failed != nil {
		cause = fmt.Errorf("%w: %w", cause, t.failed)
	}
	t.end(cause)
	return 0
}

// end closes the term, if it is open.
func (t *Term) end(cause error) {
	t.close(fmt.Errorf("term %s of the lease %s: %w", t.identity, t.lease, cause))
}

// Done is closed when the term is.
func (t *Term) Done() <-chan struct{} { return t.ctx.Done() }

// AfterFunc calls f in a goroutine once the term is closed. stop prevents the call, and reports
// whether it has.
func (t *Term) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(t.ctx, f) }

// Err returns nil while the term is open, and then why it closed: an error that wraps
// [ErrDeadline], [ErrDeleted], [ErrTaken], [ErrReleased] or [ErrStragglers].
func (t *Term) Err() error {
	t.Remaining()
	return context.Cause(t.ctx)
}

// renewed moves the fence after a renewal that was sent at a moment. It does nothing if the term is
// closed, or the fence has passed.
func (t *Term) renewed(sent instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.remainingLocked() > 0 {
		t.sent, t.failed = sent, nil
		t.renewals++
	}
}

// notRenewed remembers why a renewal failed, for the error of the term.
func (t *Term) notRenewed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed = err
}

// HandOver returns the versions by resource that the last holder gave to [Term.SetHandOver], and
// reports whether it released the Lease with them. After a crash it did not.
func (t *Term) HandOver() (versions map[string]string, ok bool) {
	return maps.Clone(t.received), t.received != nil
}

// SetHandOver keeps the newest versions by resource for the next holder. They are written with the
// release. Too many of them are an error, and nothing is left to the next holder.
func (t *Term) SetHandOver(versions map[string]string) error {
	err := checkHandOver(versions)
	if err != nil {
		versions = nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left = maps.Clone(versions)
	return err
}

// leaves returns the versions for the next holder, and the number of renewals.
func (t *Term) leaves() (versions map[string]string, renewals int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left, t.renewals
}
