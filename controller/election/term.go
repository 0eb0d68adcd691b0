package election

import (
	"context"
	"maps"
	"sync"

	"github.com/tidings-go/tidings/internal/lease"
)

// Term is a time during which its holder may write: from the success that won it to the fence. A
// closed term stays closed. Its methods may be called from any goroutine.
//
// Identity returns the holder that the Lease names during the term; no other term has it. Remaining
// returns how long the term stays open if it is not renewed; 0: it is closed. Done returns a channel
// that is closed when the term is. AfterFunc(f) calls f in a goroutine then; the function that it
// returns prevents that. Err returns nil while the term is open, and then why it closed: an error
// that wraps [ErrDeadline], [ErrDeleted], [ErrTaken], [ErrReleased] or [ErrStragglers].
type Term struct {
	*lease.Term

	received map[string]string // by the last holder; nil if it left nothing

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

// leaves returns the versions for the next holder.
func (t *Term) leaves() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.left
}
