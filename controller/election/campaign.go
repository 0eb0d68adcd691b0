package election

import (
	"context"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxFailures is the number of failures in a row with the longest delay.
const maxFailures = 3

// delay returns how long to wait after so many failures in a row: a sixtieth of the duration,
// doubled up to a fifteenth, with jitter. That is 250 ms to 1 s of 15 s. A longer time that the
// server asks for counts up to the time between renewals.
func (e *Elector) delay(failures int, err error) time.Duration {
	d := e.o.Duration / 60 << (min(failures, maxFailures) - 1)
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
		d = max(d, min(time.Duration(seconds)*time.Second, e.o.Renew))
	}
	return d - rand.N(d/4+1)
}

// sleep waits until a time has passed or ctx ends, and reports whether ctx goes on.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// campaign waits until it has won a term, ctx ends, or only a change of the cluster could help.
func (e *Elector) campaign(ctx context.Context) (*Term, error) {
	e.enter(Standby)
	for failures := 1; e.waitFree(ctx); failures++ {
		t, verb, err := e.take(ctx)
		if t != nil {
			e.writes.note(ctx, e, nil)
			e.log.Info("the term begins", "identity", t.identity)
			return t, nil
		}
		if err != nil && (!isOutdated(err) || needsUser(verb, err)) {
			e.writes.note(ctx, e, err)
			if !e.isProven() && needsUser(verb, err) {
				return nil, err
			}
		}
		sleep(ctx, e.delay(failures, err))
	}
	return nil, nil
}

func (e *Elector) isProven() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.proven
}

// waitFree waits until the Lease may be taken, and reports whether ctx goes on. A random wait at
// the end lets one of many standbys be first, and the others see it.
func (e *Elector) waitFree(ctx context.Context) bool {
	for waited := false; ctx.Err() == nil; {
		held := e.held()
		switch {
		case held <= 0 && waited:
			return true
		case held <= 0:
			waited = true
			sleep(ctx, rand.N(e.o.Duration/60))
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
// it may. It returns no term if somebody else was faster. The verb is that of its request. The end
// of ctx does not end the request, which would leave a Lease that nobody releases.
func (e *Elector) take(ctx context.Context) (t *Term, verb string, err error) {
	ctx = context.WithoutCancel(ctx)
	e.mu.Lock()
	identity, seen, held := e.identity, e.view.lease, e.heldLocked()
	expired := e.view.holder != "" && seen != nil
	e.mu.Unlock()
	if held > 0 {
		return nil, "", nil
	}
	verb, send := "create", e.leases.create
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.o.Namespace, Name: e.o.Name},
	}
	var received map[string]string
	if seen != nil {
		verb, send, lease = "update", e.leases.update, seen.DeepCopy()
		received, _ = handedOver(seen)
	}
	take(lease, identity, e.o.seconds())
	sent := e.clock.now()
	got, err := send(ctx, lease)
	if err == nil {
		return e.open(ctx, got, sent, received), verb, nil
	}
	if !isOutdated(err) || needsUser(verb, err) {
		return nil, verb, err
	}
	if expired {
		e.restartWatch() // it did not show a renewal
	}
	if readErr := e.read(ctx); readErr != nil {
		err = readErr
	}
	return nil, verb, err
}

// open opens the term that a write of the Lease has won, unless the view shows that it is lost
// again, or the fence has passed.
func (e *Elector) open(ctx context.Context, lease *coordinationv1.Lease, sent instant,
	received map[string]string) *Term {
	e.observe(lease, lease.ResourceVersion)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.proven = true
	if holderOf(e.view.lease) != e.identity {
		return nil
	}
	t := e.newTerm(ctx, e.identity, sent, received)
	if t.Remaining() <= 0 {
		return nil
	}
	e.term = t
	return t
}
