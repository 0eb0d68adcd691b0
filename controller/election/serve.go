package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// serve calls lead for a term, renews it until lead has returned, and releases it. It reports
// whether another term may follow.
func (e *Elector) serve(ctx context.Context, t *Term, lead Lead) (again bool, err error) {
	e.enter(Leading)
	leading, end := context.WithCancelCause(ctx)
	defer end(nil)
	renewing, stop := context.WithCancel(t.Context())
	var renewals sync.WaitGroup
	renewals.Go(func() {
		e.holder().Renew(e.label(renewing, "renewer"), t.Term, &e.writes, nil, e.renewal(t.Identity()))
	})
	returned := make(chan error, 1)
	go func() { returned <- lead(e.label(leading, "leader"), t) }() // lead may outlive Run
	err, inTime := e.await(ctx, t, end, returned)
	stop()
	renewals.Wait()

	lost := t.Err()
	switch {
	case errors.Is(err, ErrStragglers):
		t.End(ErrStragglers)
	case lost == nil:
		t.End(ErrReleased)
		e.release(ctx, t)
	}
	e.leave(t)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx)) ||
		lost != nil && errors.Is(err, lost) {
		err = nil
	}
	return inTime && err == nil && lost != nil && ctx.Err() == nil, err
}

// await waits until lead has returned, and ends its context when the term closes. It reports
// whether lead returned within its grace.
func (e *Elector) await(ctx context.Context, t *Term, end context.CancelCauseFunc,
	returned <-chan error) (err error, inTime bool) {
	closed, stopped := t.Done(), ctx.Done()
	var grace <-chan time.Time
	for {
		select {
		case err := <-returned:
			return err, true
		case <-closed:
			closed = nil
			end(t.Err())
			e.log.Error("the term is closed before its end", "error", t.Err())
		case <-stopped:
			stopped = nil
			e.log.Info("the term ends: the lease is released after the running calls",
				"grace", time.Duration(e.grace.Load()))
		case <-grace:
			return fmt.Errorf("election: %w %v after the end of their context: the lease %s is not released",
				ErrStragglers, time.Duration(e.grace.Load()), e.o.Namespace+"/"+e.o.Name), false
		}
		if grace == nil {
			e.enter(Draining)
			grace = time.After(time.Duration(e.grace.Load()))
		}
	}
}

// leave ends the term for this candidate. The next term has another identity.
func (e *Elector) leave(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term, e.previous, e.identity = nil, t.Identity(), e.newIdentity()
}

// holder returns the lease.Holder that writes the Lease during a term.
func (e *Elector) holder() *lease.Holder {
	return &lease.Holder{
		Client: e.client, Times: e.times, Clock: e.clock, Observed: e.leaseOf, Read: e.read,
		Observe: func(l *coordinationv1.Lease) { e.observe(l, false) },
	}
}

// release releases the Lease. It tries for a third of the duration: a Lease that is not released
// is free after its duration.
func (e *Elector) release(ctx context.Context, t *Term) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.Duration/3)
	defer cancel()
	for failures := 1; ; failures++ {
		_, err := e.holder().Swap(ctx, t.Identity(), func(l *coordinationv1.Lease) error {
			return release(l, t.leaves())
		})
		switch {
		case err == nil:
			e.log.Info("the lease is released", "identity", t.Identity())
			return
		case errors.Is(err, lease.ErrNotHeld):
			return
		}
		e.writes.Note(ctx, err)
		if !lease.Sleep(ctx, e.times.Delay(failures, err)) {
			e.log.Warn("the lease is not released: others wait for its duration", "error", err)
			return
		}
	}
}
