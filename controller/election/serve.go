package election

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// serve calls lead for a term, renews it until lead has returned, and releases it. It reports
// whether another term may follow.
func (e *Elector) serve(ctx context.Context, t *Term, lead Lead) (again bool, err error) {
	e.enter(Leading)
	leading, end := context.WithCancelCause(ctx)
	defer end(nil)
	renewing, stop := context.WithCancel(t.ctx)
	var renewals sync.WaitGroup
	renewals.Go(func() { e.renew(e.label(renewing, "renewer"), t) })
	returned := make(chan error, 1)
	go func() { returned <- lead(e.label(leading, "leader"), t) }() // a straggler outlives Run
	err, inTime := e.await(ctx, t, end, returned)
	stop()
	renewals.Wait()

	lost := t.Err()
	switch {
	case errors.Is(err, ErrStragglers):
		t.end(ErrStragglers)
	case lost == nil:
		t.end(ErrReleased)
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
				"grace", e.o.Grace)
		case <-grace:
			return fmt.Errorf("election: %w %v after the end of their context: the lease %s is not released",
				ErrStragglers, e.o.Grace, t.lease), false
		}
		if grace == nil {
			e.enter(Draining)
			grace = time.After(e.o.Grace)
		}
	}
}

// leave ends the term for this candidate. The next one has another identity.
func (e *Elector) leave(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term, e.previous, e.identity = nil, t.identity, e.newIdentity()
}

// renew renews a term until ctx ends, which ends with the term. After a failure it tries again
// soon.
func (e *Elector) renew(ctx context.Context, t *Term) {
	next := e.o.Renew
	for failures := 0; sleep(ctx, next); {
		sent, err := e.swap(ctx, t.identity, func(lease *coordinationv1.Lease) error {
			take(lease, t.identity, e.o.seconds())
			return nil
		})
		if err == nil {
			t.renewed(sent)
			e.writes.note(ctx, e, nil)
			failures, next = 0, e.o.Renew-e.clock.since(sent)
			continue
		}
		if ctx.Err() == nil {
			t.notRenewed(err)
			e.writes.note(ctx, e, err)
		}
		failures++
		next = e.delay(failures, err)
	}
}

// release gives the Lease free. It tries for a third of the duration: a Lease that is not released
// is free after its duration.
func (e *Elector) release(ctx context.Context, t *Term) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.o.Duration/3)
	defer cancel()
	versions, _ := t.leaves()
	for failures := 1; ; failures++ {
		_, err := e.swap(ctx, t.identity, func(lease *coordinationv1.Lease) error {
			return release(lease, versions)
		})
		switch {
		case err == nil:
			e.log.Info("the lease is released", "identity", t.identity)
			return
		case errors.Is(err, errNotHeld):
			return
		}
		e.writes.note(ctx, e, err)
		if !sleep(ctx, e.delay(failures, err)) {
			e.log.Warn("the lease is not released: others wait for its duration", "error", err)
			return
		}
	}
}

// swap writes a change of the Lease at the version of the view, if it has the holder. After a
// conflict it reads the Lease and tries once more. sent is the time before the write was sent.
func (e *Elector) swap(ctx context.Context, identity string,
	change func(*coordinationv1.Lease) error) (sent instant, err error) {
	for range 2 {
		lease, ok := e.leaseOf(identity)
		if !ok {
			return sent, errNotHeld
		}
		if err := change(lease); err != nil {
			return sent, err
		}
		sent = e.clock.now()
		got, err := e.leases.update(ctx, lease)
		if err == nil {
			e.observe(got, got.ResourceVersion)
			return sent, nil
		}
		if !isOutdated(err) {
			return sent, err
		}
		if err := e.read(ctx); err != nil {
			return sent, err
		}
	}
	return sent, errOutpaced
}
