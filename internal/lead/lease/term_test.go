package lease

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// still is a machine that is never suspended: Go's clock, which is virtual, counts alone.
var still = Clock{Boot: func() time.Duration { return 0 }}

func (c Clock) term(t *testing.T, duration time.Duration) *Term {
	times := Times{Duration: duration}.Complete(5)
	return NewTerm(t.Context(), "ops/rollout", "a", times, c, c.Now())
}

// wantClosed waits until a term closes, and checks when and why it does.
func wantClosed(t *testing.T, term *Term, began time.Time, after time.Duration, cause error) {
	t.Helper()
	<-term.Done()
	if got := time.Since(began); got != after {
		t.Errorf("the term closed after %v, want %v", got, after)
	}
	if err := term.Err(); !errors.Is(err, cause) || context.Cause(term.Context()) != err {
		t.Errorf("the term has the error %v, and its context %v, want %v", err,
			context.Cause(term.Context()), cause)
	}
	if left := term.Remaining(); left != 0 {
		t.Errorf("a closed term has %v", left)
	}
}

func TestATermClosesAFifthBeforeTheSecondsThatAreWritten(t *testing.T) {
	for duration, fence := range map[time.Duration]time.Duration{
		0:                       12 * time.Second, // the default
		15 * time.Second:        12 * time.Second,
		time.Second:             800 * time.Millisecond,
		1900 * time.Millisecond: 800 * time.Millisecond,
		7900 * time.Millisecond: 5600 * time.Millisecond,
		time.Hour:               48 * time.Minute,
	} {
		t.Run(duration.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, term := time.Now(), still.term(t, duration)
				time.Sleep(fence - time.Nanosecond)
				if left, err := term.Remaining(), term.Err(); left != time.Nanosecond || err != nil {
					t.Errorf("before the fence %v are left, %v", left, err)
				}
				wantClosed(t, term, began, fence, ErrDeadline)
				if !errors.Is(term.Err(), ErrLost) {
					t.Errorf("a term that is lost has the error %v", term.Err())
				}
			})
		})
	}
}

func TestTheFenceCountsFromTheSendingOfTheLastSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, term := time.Now(), still.term(t, 15*time.Second)
		time.Sleep(3 * time.Second)
		sent := still.Now()
		time.Sleep(2 * time.Second)
		term.Renewed(sent)
		if left := term.Remaining(); left != 10*time.Second {
			t.Errorf("%v are left after a renewal that took 2s", left)
		}
		time.Sleep(3 * time.Second)
		term.notRenewed(errors.New("no answer")) // it was sent, and does not count
		wantClosed(t, term, began, 15*time.Second, ErrDeadline)
		if !strings.Contains(term.Err().Error(), "term a of the lease ops/rollout: ") ||
			!strings.Contains(term.Err().Error(), "no answer") || term.Renewals() != 1 {
			t.Errorf("after %d renewals the error is %v", term.Renewals(), term.Err())
		}
	})
}

func TestAFailureBeforeASuccessIsNotTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := still.term(t, 15*time.Second)
		term.notRenewed(errors.New("no answer"))
		term.Renewed(still.Now())
		<-term.Done()
		if strings.Contains(term.Err().Error(), "no answer") {
			t.Errorf("the error is %v", term.Err())
		}
	})
}

func TestALateSuccessDoesNotReopenATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, term := time.Now(), still.term(t, 15*time.Second)
		time.Sleep(11 * time.Second)
		sent := still.Now() // in time, and answered too late
		wantClosed(t, term, began, 12*time.Second, ErrDeadline)
		term.Renewed(sent)
		term.Renewed(still.Now())
		wantClosed(t, term, began, 12*time.Second, ErrDeadline)
		if term.Renewals() != 0 {
			t.Errorf("%d renewals count", term.Renewals())
		}
	})
}

// TestALateSuccessIsRefusedBeforeAnyTimer has a fence that has passed while the machine was
// suspended: no timer has noticed it.
func TestALateSuccessIsRefusedBeforeAnyTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		suspended := time.Duration(0)
		clock := Clock{Boot: func() time.Duration { return suspended }}
		began, term := time.Now(), clock.term(t, 15*time.Second)
		suspended = 12 * time.Second
		term.Renewed(clock.Now())
		wantClosed(t, term, began, 0, ErrDeadline)
	})
}

// TestASuspendedMachineIsNoticedWithinAFifteenth has a boot clock that is an hour ahead after 5 s.
func TestASuspendedMachineIsNoticedWithinAFifteenth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		clock := Clock{Boot: func() time.Duration {
			if passed := time.Since(began); passed <= 5*time.Second {
				return passed
			}
			return time.Hour
		}}
		wantClosed(t, clock.term(t, 15*time.Second), began, 6*time.Second, ErrDeadline)
	})
}

func TestTheFirstEndOfATermStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, term := time.Now(), still.term(t, 15*time.Second)
		calls := 0
		term.AfterFunc(func() { calls++ })
		stop := term.AfterFunc(func() { t.Error("a call that was stopped") })
		if !stop() {
			t.Error("the call cannot be stopped")
		}
		time.Sleep(time.Second)
		term.End(ErrReleased)
		term.End(ErrTaken)
		term.Renewed(still.Now())
		wantClosed(t, term, began, time.Second, ErrReleased)
		synctest.Wait()
		if errors.Is(term.Err(), ErrLost) || calls != 1 {
			t.Errorf("%d calls, %v", calls, term.Err())
		}
	})
}

func TestATermOutlivesItsParentAndKeepsItsValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
		term := NewTerm(parent, "ops/rollout", "a", Times{Duration: time.Minute}, still, still.Now())
		cancel()
		if term.Err() != nil || term.Context().Value(key{}) != "value" {
			t.Errorf("%v, %v", term.Err(), term.Context().Value(key{}))
		}
		term.End(ErrReleased)
	})
}

func TestALossIsThatTheLeaseNamesNoOrAnotherHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		term := still.term(t, 15*time.Second)
		defer term.End(ErrReleased)
		held := func(holder string) *Lease {
			l := new(Lease)
			l.Spec.HolderIdentity = &holder
			return l
		}
		if err := term.Loss(held("a")); err != nil {
			t.Errorf("the own Lease is a loss: %v", err)
		}
		if err := term.Loss(nil); !errors.Is(err, ErrDeleted) {
			t.Errorf("a Lease that is gone: %v", err)
		}
		for _, l := range []*Lease{new(Lease), held("")} {
			if err := term.Loss(l); !errors.Is(err, ErrTaken) || !strings.Contains(err.Error(), "removed") {
				t.Errorf("a Lease without a holder: %v", err)
			}
		}
		if err := term.Loss(held("b")); !errors.Is(err, ErrTaken) ||
			!strings.HasSuffix(err.Error(), "taken by b") {
			t.Errorf("a Lease of another: %v", err)
		}
	})
}
