package terms

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/gate"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// outcomeWait bounds the wait for the versions of the last writes at the end of a term. The server
// is asked a second after its answer to a write that failed.
const outcomeWait = 2 * time.Second

// Succession is the place of a run between the last holder of its term and the next.
type Succession struct {
	Term     guard.Term // nil without one
	Gate     *gate.Gate
	Asker    *barrier.Asker
	tookOver bool // the run has waited for the writes of the last holder
}

// left returns the versions that the last holder left. Without a HandOver method, has is false and
// known is true.
func (s *Succession) left() (versions map[string]string, known, has bool) {
	t, has := s.Term.(interface {
		HandOver() (map[string]string, bool)
	})
	if !has {
		return nil, true, false
	}
	versions, known = t.HandOver()
	return versions, known, true
}

// TakeOver waits, bounded, until the caches show the writes of the last holder of the term.
func (s *Succession) TakeOver() {
	left, known, has := s.left()
	if !has {
		return
	}
	versions, all, behind := s.Gate.Reach(left, known)
	if known && s.Gate.Server != nil { // after a crash it is not known whether anything was written
		s.Gate.Waits.Add(behind...)
	}
	s.Gate.Barrier.Reached(barrier.NoSlot, versions) // the next owner has to reach them too
	s.tookOver = all && s.Gate.Context.Err() == nil
}

// Leave gives the newest versions that calls have written to the term, for the next holder, and the
// versions that the last holder has left. The version of a delete is known when the cache shows it,
// and the version of a write without an answer when the server was asked. The term receives nil if
// that takes longer than outcomeWait, or if the last holder has left no versions and the run has
// ended before it had the server's.
func (s *Succession) Leave() {
	t, ok := s.Term.(interface{ Reached(map[string]string) })
	if !ok || s.Term.Err() != nil {
		return
	}
	left, known, _ := s.left()
	if !known && !s.tookOver {
		t.Reached(nil)
		return
	}
	b := s.Gate.Barrier
	b.Reached(barrier.NoSlot, left)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.Gate.Context), outcomeWait)
	defer cancel()
	ticker := time.NewTicker(outcomeWait / 100)
	defer ticker.Stop()
	for {
		open := b.Unversioned()
		if len(open) == 0 {
			t.Reached(b.Written(slot.Set{}))
			return
		}
		for _, key := range open {
			s.Asker.About(ctx, key)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			s.Gate.Logger.Info("the outcome of writes is not known at the end of the term: the next "+
				"holder asks the server what it has", "keys", len(open))
			t.Reached(nil)
			return
		}
	}
}
