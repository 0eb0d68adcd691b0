package election

import (
	"cmp"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// view is the Lease as it was last observed: in a list, an event, or the answer to a request.
type view struct {
	version string                // "" before the first observation
	lease   *coordinationv1.Lease // nil without one; not changed
	since   instant               // when this record was first observed
	// holder and length are those of the last record: a Lease that is gone is held for that long.
	holder string
	length time.Duration

	named   time.Time // when this holder was first observed
	polling error     // why the Lease is not watched, or nil
}

// unknownHolder stands for the holder of a Lease that a read does not find: somebody may have held
// it since the last observation.
const unknownHolder = "unknown"

// older reports whether a version is not newer than another. A version that cannot be compared is
// newer.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order <= 0
}

// observe takes the Lease of an event, or of the answer to a write, into the view. A Lease that was
// deleted is nil. A version that is older than the view has no effect.
func (e *Elector) observe(lease *coordinationv1.Lease, version string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !older(version, e.view.version) {
		e.observeLocked(lease, version)
	}
}

// observeRead takes the Lease of a consistent read into the view. A Lease that is missing is nil.
// sentAt is the version of the view when the read was sent. If the view still has it, the read is
// newer, even if the server has lost later versions.
func (e *Elector) observeRead(lease *coordinationv1.Lease, version, sentAt string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v := &e.view
	if v.version != sentAt && older(cmp.Or(version, sentAt), v.version) {
		return
	}
	if open := e.term != nil && e.term.Remaining() > 0; lease == nil && v.lease != nil && !open {
		v.holder, v.length = unknownHolder, max(v.length, e.o.Duration)
	}
	e.observeLocked(lease, cmp.Or(version, sentAt))
}

func (e *Elector) observeLocked(lease *coordinationv1.Lease, version string) {
	v := &e.view
	if !e.seen || !sameRecord(v.lease, lease) {
		v.since = e.clock.now()
		if lease != nil {
			v.holder, v.length = holderOf(lease), e.o.Duration
			if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil {
				v.length = time.Duration(*seconds) * time.Second
			}
		}
	}
	if !e.seen || holderOf(v.lease) != holderOf(lease) {
		v.named = time.Now()
		notify(e.renamed)
	}
	v.lease, v.version, e.seen = lease, version, true
	if t := e.term; t != nil && holderOf(lease) != t.identity {
		t.end(lossOf(lease))
	}
	notify(e.changed)
}

// lossOf returns why a term is over that a Lease, nil for none, does not name.
func lossOf(lease *coordinationv1.Lease) error {
	switch holder := holderOf(lease); {
	case lease == nil:
		return ErrDeleted
	case holder == "":
		return fmt.Errorf("%w: somebody removed the holder", ErrTaken)
	default:
		return fmt.Errorf("%w by %s", ErrTaken, holder)
	}
}

// sameRecord reports whether two Leases say the same of their holder.
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

// held returns how long the Lease must be treated as held by another; 0 or less: it may be taken.
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
		return v.length - e.clock.since(v.since)
	}
}

// leaseOf returns a copy of the Lease if it has the holder.
func (e *Elector) leaseOf(identity string) (*coordinationv1.Lease, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.view.lease == nil || holderOf(e.view.lease) != identity {
		return nil, false
	}
	return e.view.lease.DeepCopy(), true
}
