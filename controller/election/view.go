package election

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// view is the Lease as it was last observed: in a list, an event, or the answer to a request.
type view struct {
	lease.View
	lease *coordinationv1.Lease // nil without one; not changed
	since lease.Instant         // the time at which this record was first observed
	// holder and length are those of the last record: a deleted Lease counts as held for that
	// long.
	holder string
	length time.Duration

	named time.Time // the time at which this holder was first observed
}

// unknownHolder stands for the holder of a Lease that a read does not find: another candidate may
// have held it since the last observation.
const unknownHolder = "unknown"

func (e *Elector) read(ctx context.Context) error {
	e.mu.Lock()
	sentAt := e.view.Version(e.o.Name)
	e.mu.Unlock()
	got, err := e.client.Get(ctx, e.o.Name)
	if apierrors.IsNotFound(err) {
		got, err = nil, nil
	}
	if err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.Read(e.o.Name, got, sentAt)
	return nil
}

// list lists the Lease into the view, and returns the version of the list.
func (e *Elector) list(ctx context.Context) (version string, err error) {
	e.mu.Lock()
	sentAt := e.view.Newest()
	e.mu.Unlock()
	list, err := e.client.List(ctx)
	if err != nil {
		return "", err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.List(list, sentAt, map[string]bool{e.o.Name: true})
	return list.ResourceVersion, nil
}

// observe takes the Lease of an event, or of the answer to a write, into the view.
func (e *Elector) observe(l *coordinationv1.Lease, deleted bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.view.Event(l, deleted)
}

// put is the Put of the view.
func (e *Elector) put(o lease.Observation) {
	if o.Name != e.o.Name {
		return
	}
	v, l := &e.view, o.Lease
	isOpen := e.term != nil && e.term.Remaining() > 0
	if l == nil && !o.Deleted && v.lease != nil && !isOpen {
		v.holder, v.length = unknownHolder, max(v.length, e.o.Duration)
	}
	if !e.seen || !sameRecord(v.lease, l) {
		v.since = e.clock.Now()
		if l != nil {
			v.holder, v.length = lease.HolderOf(l), e.o.Duration
			if seconds := l.Spec.LeaseDurationSeconds; seconds != nil {
				v.length = time.Duration(*seconds) * time.Second
			}
		}
	}
	if !e.seen || lease.HolderOf(v.lease) != lease.HolderOf(l) {
		v.named = time.Now()
		notify(e.renamed)
	}
	v.lease, e.seen = l, true
	if t := e.term; t != nil {
		if loss := t.Loss(l); loss != nil {
			t.End(loss)
		}
	}
	notify(e.changed)
}

func sameRecord(a, b *coordinationv1.Lease) bool {
	if a == nil || b == nil {
		return a == b
	}
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// notify wakes the receiver of a channel that holds one notification.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// held returns the time for which the Lease must be treated as held by another; 0 or less: it may
// be taken.
func (e *Elector) held() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heldLocked()
}

func (e *Elector) heldLocked() time.Duration {
	switch v := &e.view; {
	case !e.seen:
		return e.o.Duration
	case v.holder == "", v.holder == e.identity, v.holder == e.previous:
		return 0 // the terms of own identities are closed
	default:
		return v.length - e.clock.Since(v.since)
	}
}

// leaseOf returns a copy of the Lease if it has the holder.
func (e *Elector) leaseOf(identity string) (*coordinationv1.Lease, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.lease == nil || lease.HolderOf(e.view.lease) != identity {
		return nil, false
	}
	return e.view.lease.DeepCopy(), true
}
