package lease

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Lease is that of coordination.k8s.io/v1.
type Lease = coordinationv1.Lease

// HolderOf returns the holder of a Lease, "" if it is nil or released.
func HolderOf(l *Lease) string {
	if l == nil || l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

// Take writes a holder into a Lease, which it holds for so many seconds. Like client-go's
// elector, it counts a transition only if the Lease had another holder, or was released.
func Take(l *Lease, identity string, seconds int32) {
	transitions := int32(0)
	if l.Spec.LeaseTransitions != nil {
		transitions = *l.Spec.LeaseTransitions
	}
	now := metav1.NewMicroTime(time.Now().Truncate(time.Microsecond))
	if last := l.Spec.RenewTime; last != nil && last.Time.Equal(now.Time) {
		now.Time = now.Add(time.Microsecond) // otherwise others would see no change
	}
	if HolderOf(l) != identity {
		l.Spec.AcquireTime = &now
		if l.ResourceVersion != "" {
			transitions++
		}
	}
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = &identity, &seconds
	l.Spec.RenewTime, l.Spec.LeaseTransitions = &now, &transitions
}

// Release writes that a Lease has no holder, as client-go's elector does: for one second.
func Release(l *Lease) {
	now := metav1.NewMicroTime(time.Now())
	l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new(""), new(int32(1))
	l.Spec.AcquireTime, l.Spec.RenewTime = &now, &now
}

// IsOlder reports whether a version is not newer than another. A version that cannot be compared is
// newer.
func IsOlder(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order <= 0
}

// Holder writes a Lease that it holds, at the version that it has observed last.
type Holder struct {
	Client *Client
	Times  Times
	Clock  Clock
	// Observed returns a copy of the Lease as it was observed last, if it has the holder.
	Observed func(identity string) (*Lease, bool)
	// Observe takes the Lease of an answer into the view.
	Observe func(l *Lease)
	// Read reads the Lease into the view.
	Read func(ctx context.Context) error
}

// Swap writes a change of the Lease, if it has the holder. After a conflict it reads the Lease and
// tries once more. sent is the time before the write was sent.
func (h *Holder) Swap(ctx context.Context, identity string,
	change func(*Lease) error) (sent Instant, err error) {
	for range 2 {
		l, ok := h.Observed(identity)
		if !ok {
			return sent, ErrNotHeld
		}
		if err := change(l); err != nil {
			return sent, err
		}
		sent = h.Clock.Now()
		got, err := h.Client.Update(ctx, l)
		if err == nil {
			h.Observe(got)
			return sent, nil
		}
		if !IsOutdated(err) {
			return sent, err
		}
		if err := h.Read(ctx); err != nil {
			return sent, err
		}
	}
	return sent, errOutpaced
}

// Renew renews a term until ctx ends, which ends with the term. The time between renewals counts
// from the sending of the last success, the write that won the term included. After a failure it
// tries again soon. change writes a renewal into the Lease. soon asks for one before its time; it
// may be nil.
func (h *Holder) Renew(ctx context.Context, t *Term, requests *Requests, soon <-chan struct{},
	change func(*Lease) error) {
	next := h.Times.Renew - t.sinceSent()
	for failures := 0; wait(ctx, next, soon); {
		sent, err := h.Swap(ctx, t.Identity(), change)
		if err == nil {
			t.Renewed(sent)
			requests.Note(ctx, nil)
			failures, next = 0, h.Times.Renew-t.sinceSent()
			continue
		}
		if ctx.Err() == nil {
			t.notRenewed(err)
			requests.Note(ctx, err)
		}
		failures++
		next = h.Times.Delay(failures, err)
	}
}

// wait is Sleep, and ends early when there is something in a channel.
func wait(ctx context.Context, d time.Duration, soon <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-soon:
	case <-timer.C:
	}
	return ctx.Err() == nil
}
