package election

import (
	"context"
	"maps"
	"sync"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// Term is a time during which its holder may write: from the success that won it to the fence. A
// closed term stays closed. Its methods may be called from any goroutine.
//
// Identity returns the holder that the Lease names during the term; no other term has it. Remaining
// returns the time for which the term stays open if it is not renewed; 0: it is closed. Done
// returns a channel that is closed when the term is. AfterFunc(f) then calls f in a goroutine; the
// function that it returns prevents the call. Err returns nil while the term is open, and then the
// reason for its end: an error that wraps [ErrDeadline], [ErrDeleted], [ErrTaken], [ErrReleased] or
// [ErrStragglers].
type Term struct {
	*lease.Term

	received map[string]string // the versions of the last holder; nil if it left none

	mu   sync.Mutex // guards left
	left map[string]string
}

// newTerm returns a term, which is open until its fence. Its context keeps the values of ctx, and
// does not end with ctx.
func (e *Elector) newTerm(ctx context.Context, identity string, sent lease.Instant,
	received map[string]string) *Term {
	name := e.o.Namespace + "/" + e.o.Name
	return &Term{
		Term:     lease.NewTerm(ctx, name, identity, e.times, e.clock, sent),
		received: received,
	}
}

// HandOver returns the versions by resource and selection that the last holder gave to
// [Term.SetHandOver], and reports whether it released the Lease with them. After a crash there are
// none.
func (t *Term) HandOver() (versions map[string]string, ok bool) {
	return maps.Clone(t.received), t.received != nil
}

// SetHandOver keeps the newest versions by resource and selection for the next holder. They are
// written with the release. SetHandOver returns an error for too many of them, and the next holder
// then receives none.
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

// leaves returns the versions for the next holder.
func (t *Term) leaves() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}
