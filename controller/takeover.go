package controller

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// outcomeWait bounds the wait for the versions of the last writes at the end of a term. The
// server is asked a second after its answer to a write that failed.
const outcomeWait = 2 * time.Second

// left returns the versions that the last holder left. Without a HandOver method, has is false and
// known is true.
func (r *run[T]) left() (versions map[string]string, known, has bool) {
	t, has := r.term.(interface {
		HandOver() (map[string]string, bool)
	})
	if !has {
		return nil, true, false
	}
	versions, known = t.HandOver()
	return versions, known, true
}

// takeOver waits, bounded, until the caches show the writes of the last holder of the term.
func (r *run[T]) takeOver() {
	left, known, has := r.left()
	if !has {
		return
	}
	versions, all, behind := r.gate.Reach(left, known)
	if known && r.c.o.Guard != nil { // after a crash it is not known whether anything was written
		r.gate.Waits.Add(behind...)
	}
	r.barrier.Reached(barrier.NoSlot, versions) // the next owner has to reach them too
	r.tookOver = all && r.ctx.Err() == nil
}

// handOver gives the newest versions that calls have written to the term, for the next holder, and those
// that the last holder has left. The version of a delete is known when the cache shows it, and that of a
// write without an answer when the server was asked. The term receives nil if that takes longer than
// outcomeWait, or if the last holder has left no versions and the run has ended before it had those of
// the server.
func (r *run[T]) handOver() {
	t, ok := r.term.(interface{ Reached(map[string]string) })
	if !ok || r.term.Err() != nil {
		return
	}
	left, known, _ := r.left()
	if !known && !r.tookOver {
		t.Reached(nil)
		return
	}
	r.barrier.Reached(barrier.NoSlot, left)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), outcomeWait)
	defer cancel()
	ticker := time.NewTicker(outcomeWait / 100)
	defer ticker.Stop()
	for {
		open := r.barrier.Unversioned()
		if len(open) == 0 {
			t.Reached(r.barrier.Written(slot.Set{}))
			return
		}
		for _, key := range open {
			r.asker.About(ctx, key)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.c.o.Logger.Info("the outcome of writes is not known at the end of the term: the next "+
				"holder asks the server what it has", "keys", len(open))
			t.Reached(nil)
			return
		}
	}
}
