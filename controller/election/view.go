package election

import (
	"cmp"
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/internal/lead/lease"
)

// view is the Lease as it was last observed: in a list, an event, or the answer to a request.
type view struct {
	version string                // "" before the first observation
	lease   *coordinationv1.Lease // nil without one; not changed
	since   lease.Instant         // the time at which this record was first observed
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
	sentAt := e.version()
	got, err := e.client.Get(ctx, e.o.Name)
	switch {
	case apierrors.IsNotFound(err):
		e.observeRead(nil, "", sentAt)
		return nil
	case err != nil:
		return err
	}
	e.observeRead(got, got.ResourceVersion, sentAt)
	return nil
}

// list lists the Lease into the view, and returns the version of the list.
func (e *Elector) list(ctx context.Context) (version string, err error) {
	sentAt := e.version()
	list, err := e.client.List(ctx)
	if err != nil {
		return "", err
	}
	var found *coordinationv1.Lease
	version = list.ResourceVersion
	for i := range list.Items {
		if list.Items[i].Name == e.o.Name {
			found, version = &list.Items[i], list.Items[i].ResourceVersion
		}
	}
	e.observeRead(found, version, sentAt)
	return list.ResourceVersion, nil
}

func (e *Elector) version() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.view.version
}

// observeEvent takes the Lease of an event into the view.
func (e *Elector) observeEvent(l *coordinationv1.Lease, deleted bool) {
	switch version := l.ResourceVersion; {
	case l.Name != e.o.Name:
	case deleted:
		e.observe(nil, version)
	default:
		e.observe(l, version)
	}
}

// observe takes the Lease of an event, or of the answer to a write, into the view. A Lease that was
// deleted is nil. A version that is older than the view has no effect.
func (e *Elector) observe(l *coordinationv1.Lease, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !lease.IsOlder(version, e.view.version) {
		e.observeLocked(l, version)
	}
}

// observeRead takes the Lease of a consistent read into the view. A Lease that is missing is nil.
// sentAt is the version of the view when the read was sent. If the view still has it, the read is
// newer, even if the server has lost later versions.
func (e *Elector) observeRead(l *coordinationv1.Lease, version, sentAt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &e.view
	if v.version != sentAt && lease.IsOlder(cmp.Or(version, sentAt), v.version) {
		return
	}
	if open := e.term != nil && e.term.Remaining() > 0; l == nil && v.lease != nil && !open {
		v.holder, v.length = unknownHolder, max(v.length, e.o.Duration)
	}
	e.observeLocked(l, cmp.Or(version, sentAt))
}

func (e *Elector) observeLocked(l *coordinationv1.Lease, version string) {
	v := &e.view
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
	v.lease, v.version, e.seen = l, version, true
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
