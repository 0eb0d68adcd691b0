package election

import (
	"context"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// campaign waits until it has won a term, or ctx ends, or it meets an error that only a change of
// the cluster can mend.
func (e *Elector) campaign(ctx context.Context) (*Term, error) {
	e.enter(Standby)
	for failures := 1; e.waitFree(ctx); failures++ {
		t, verb, err := e.take(ctx)
		if t != nil {
			e.writes.Note(ctx, nil)
			e.log.Info("the term begins", "identity", t.Identity())
			return t, nil
		}
		if err != nil && (!lease.IsOutdated(err) || lease.NeedsUser(verb, err)) {
			e.writes.Note(ctx, err)
			if !e.isProven() && lease.NeedsUser(verb, err) {
				return nil, err
			}
		}
		lease.Sleep(ctx, e.times.Delay(failures, err))
	}
	return nil, nil
}

func (e *Elector) isProven() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proven
}

// waitFree waits until the Lease may be taken, and reports whether ctx goes on. A random wait at
// the end makes one of many standbys the first, and the others observe its write.
func (e *Elector) waitFree(ctx context.Context) bool {
	for waited := false; ctx.Err() == nil; {
		held := e.held()
		switch {
		case held <= 0 && waited:
			return true
		case held <= 0:
			waited = true
			lease.Sleep(ctx, rand.N(e.o.Duration/60))
			continue
		}
		waited = false
		timer := time.NewTimer(held)
		select {
		case <-ctx.Done():
		case <-e.changed:
		case <-timer.C:
		}
		timer.Stop()
	}
	return false
}

// take tries to write this candidate into the Lease, at the version at which the view shows that
// it is free. It returns no term if another candidate was faster. verb is the verb of its request.
// The end of ctx does not end the request, as this could leave a Lease that no process releases.
func (e *Elector) take(ctx context.Context) (t *Term, verb string, err error) {
	ctx = context.WithoutCancel(ctx)
	e.mu.Lock()
	identity, seen, held := e.identity, e.view.lease, e.heldLocked()
	expired := e.view.holder != "" && seen != nil
	e.mu.Unlock()
	if held > 0 {
		return nil, "", nil
	}
	verb, send := "create", e.client.Create
	wanted := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.o.Namespace, Name: e.o.Name},
	}
	var received map[string]string
	if seen != nil {
		verb, send, wanted = "update", e.client.Update, seen.DeepCopy()
		received, _ = handedOver(seen)
	}
	e.renewal(identity)(wanted) //nolint:errcheck // its error is always nil
	sent := e.clock.Now()
	got, err := send(ctx, wanted)
	if err == nil {
		return e.open(ctx, got, sent, received), verb, nil
	}
	if !lease.IsOutdated(err) || lease.NeedsUser(verb, err) {
		return nil, verb, err
	}
	if expired {
		e.follower.Restart() // the watch did not show a renewal
	}
	if readErr := e.read(ctx); readErr != nil {
		err = readErr
	}
	return nil, verb, err
}

// open opens the term that a write of the Lease has won, unless the view shows that it is lost
// again, or the fence has passed.
func (e *Elector) open(ctx context.Context, won *coordinationv1.Lease, sent lease.Instant,
	received map[string]string) *Term {
	e.observe(won, false)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proven = true
	if lease.HolderOf(e.view.lease) != e.identity {
		return nil
	}
	t := e.newTerm(ctx, e.identity, sent, received)
	if t.Remaining() <= 0 {
		return nil
	}
	e.term = t
	return t
}
