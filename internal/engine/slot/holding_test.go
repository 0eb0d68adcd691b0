package slot

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// member is a collection that calls functions.
type member struct {
	merge func(context.Context) error
	leave func(context.Context, Set) error
}

func (m *member) Merge(ctx context.Context, _ Set) error { return m.merge(ctx) }

func (m *member) Leave(ctx context.Context, slots Set) error { return m.leave(ctx, slots) }

// TestS6_RemoveAsSlotsComeBack removes a slot while an Add of it waits for others to leave. No slot
// that is held leaves.
func TestS6_RemoveAsSlotsComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolding(UID, Of(1, 2))
		var left Set
		proceed := make(chan struct{})
		Attach(h, &member{
			merge: func(context.Context) error { return nil },
			leave: func(_ context.Context, slots Set) error {
				<-proceed
				left = left.Union(slots)
				for n := range slots.Slots() {
					if h.Slots().Has(n) {
						t.Errorf("%d leaves, and is held", n)
					}
				}
				return nil
			},
		})
		h.Remove(Of(2))
		added := make(chan error)
		go func() { added <- h.Add(t.Context(), Of(1, 2)) }()
		synctest.Wait()
		h.Remove(Of(1))
		close(proceed)
		if err := <-added; err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if left != Of(1, 2) || h.Slots() != Of(1, 2) {
			t.Errorf("%v have left, and %v are held", left, h.Slots())
		}
	})
}

// TestS6_RemoveWhileAddWaits removes a slot while an Add is at work, and another while slots cannot
// leave, which ends an Add with its context.
func TestS6_RemoveWhileAddWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolding(UID, Of(1))
		var left Set
		blocked := make(chan struct{})
		m := &member{
			merge: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
			leave: func(_ context.Context, slots Set) error { left = slots; return nil },
		}
		Attach(h, m)
		ctx, cancel := context.WithCancel(t.Context())
		added := make(chan error)
		go func() { added <- h.Add(ctx, Of(2)) }()
		synctest.Wait()
		h.Remove(Of(1))
		synctest.Wait()
		if left != Of(1) {
			t.Errorf("%v have left during Add", left)
		}
		cancel()
		if err := <-added; !errors.Is(err, context.Canceled) {
			t.Errorf("Add: %v", err)
		}

		m.leave = func(ctx context.Context, _ Set) error {
			select {
			case <-blocked:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		h.Remove(Of(2))
		ctx, cancel = context.WithCancel(t.Context())
		go func() { added <- h.Add(ctx, Of(2)) }()
		synctest.Wait()
		cancel()
		if err := <-added; !errors.Is(err, context.Canceled) {
			t.Errorf("Add of a slot that cannot leave: %v", err)
		}
		close(blocked)
	})
}

// TestS6_AddAgainAfterAnError: slots stay held after an error, and another Add of them is no addition.
// Every member is asked at once: one that does not answer holds up no other.
func TestS6_AddAgainAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHolding(UID, Set{})
		var asked, left atomic.Int64
		err := errors.New("forbidden")
		proceed := make(chan struct{})
		for i := range 3 {
			Attach(h, &member{
				merge: func(context.Context) error {
					asked.Add(1)
					<-proceed
					if i == 0 {
						return err
					}
					return nil
				},
				leave: func(context.Context, Set) error {
					left.Add(1)
					<-proceed
					return nil
				},
			})
		}
		added := make(chan error)
		go func() { added <- h.Add(t.Context(), Of(1)) }()
		synctest.Wait()
		if asked.Load() != 3 {
			t.Errorf("%d members are asked", asked.Load())
		}
		close(proceed)
		if got := <-added; !errors.Is(got, err) || h.Adds() != 1 || h.Slots() != Of(1) {
			t.Errorf("%v after %d additions; %v are held", got, h.Adds(), h.Slots())
		}
		err = nil
		if err := h.Add(t.Context(), Of(1)); err != nil || h.Adds() != 1 {
			t.Errorf("%v after %d additions", err, h.Adds())
		}
		if err := h.Add(t.Context(), Of(1, 2)); err != nil || h.Adds() != 2 {
			t.Errorf("%v after %d additions", err, h.Adds())
		}
		proceed = make(chan struct{})
		h.Remove(Of(1))
		synctest.Wait()
		if left.Load() != 3 {
			t.Errorf("%d members drop the slot", left.Load())
		}
		close(proceed)
	})
}
