package election

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

const fence = duration * 4 / 5

func TestC10_TheFenceCountsFromTheSendingOfARenewal(t *testing.T) {
	bubble(t, func(t *world) {
		t.server.Inject(by("a", ""), apisim.Delay(2*time.Second))
		a := t.start(options("a"), 0)
		term, span := t.term(a, 0)
		if left := term.Remaining(); left != fence-2*time.Second-time.Since(span.begin) {
			t.Errorf("the fence is in %v, %v after the beginning", left, time.Since(span.begin))
		}
		time.Sleep(2 * time.Second)
		most := time.Duration(0)
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			most = max(most, term.Remaining())
		}
		t.wantBetween("the fence after renewals that took 2 s", most, fence-2010*time.Millisecond,
			fence-2*time.Second)
	})
}

func TestC10_ATermClosesWhileTheServerIsAwayAndAnotherFollows(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		first, span := t.term(a, 0)
		time.Sleep(10 * time.Second) // the last renewal was at 9 s
		sent := span.begin.Add(9 * time.Second)
		t.server.SetAvailable(false)
		<-first.Done()
		t.wantBetween("the fence", time.Since(sent), fence, fence)
		t.wantErr(first.Err(), ErrDeadline)
		t.wantErr(first.Err(), ErrLost)
		if !strings.Contains(first.Err().Error(), "update lease ops/rollout") {
			t.Errorf("the error does not say why the renewal failed: %v", first.Err())
		}
		time.Sleep(time.Minute)
		back := time.Now()
		t.server.SetAvailable(true)
		second, next := t.term(a, 1)
		t.wantBetween("the next term", next.begin.Sub(back), 0, 2*time.Second)
		if first.Remaining() != 0 || first.Err() == nil || second.Err() != nil {
			t.Errorf("the terms are %v and %v", first.Err(), second.Err())
		}
		if first.Identity() == second.Identity() {
			t.Errorf("both terms have the identity %s", first.Identity())
		}
	})
}

func TestC10_ADeletedLeaseClosesTheTermAtOnceAndIsHeldForOthers(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		t.server.Inject(by("a", "create"), apisim.Refuse(http.StatusInternalServerError, 0))
		deleted := time.Now()
		if _, err := t.server.Delete(t.Context(), leaseResource, "ops", "rollout"); err != nil {
			t.Fatal(err)
		}
		<-term.Done()
		t.wantBetween("the loss", time.Since(deleted), 0, 0)
		t.wantErr(term.Err(), ErrDeleted)
		_, span := t.term(b, 0)
		t.wantBetween("the next holder", span.begin.Sub(deleted), duration,
			duration+250*time.Millisecond)
	})
}

func TestC10_ATakenLeaseClosesTheTermAtOnceAndNamesTheHolder(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		t.change(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new("thief") })
		synctest.Wait()
		t.wantErr(term.Err(), ErrTaken)
		if !strings.Contains(term.Err().Error(), "taken by thief") {
			t.Errorf("the error does not name the holder: %v", term.Err())
		}
	})
}

func TestC10_ATakenLeaseIsFoundWithoutAWatch(t *testing.T) {
	bubble(t, func(t *world) {
		t.server.Inject(by("a", "watch"), apisim.Stall(1, 0))
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		time.Sleep(4 * time.Second)
		t.change(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new("thief") })
		taken := time.Now()
		<-term.Done()
		t.wantBetween("the loss", time.Since(taken), 0, a.o.Renew)
		t.wantErr(term.Err(), ErrTaken)
	})
}

func TestC10_OtherChangesOfTheLeaseDoNotCloseTheTerm(t *testing.T) {
	bubble(t, func(t *world) {
		t.server.Inject(by("a", "watch"), apisim.Stall(1, 0)) // so that each one is a conflict
		a := t.start(options("a"), 0)
		term, _ := t.term(a, 0)
		for range 20 {
			t.change(func(lease *coordinationv1.Lease) {
				lease.Labels = map[string]string{"at": time.Now().Format("05")}
			})
			time.Sleep(3 * time.Second)
		}
		if term.Remaining() < 8*time.Second || t.lease().Labels["at"] == "" {
			t.Errorf("a minute later the term has %v and the lease is %v", term.Remaining(), t.lease())
		}
	})
}

func TestC10_ARenewalThatHangsDoesNotHideTheNextOne(t *testing.T) {
	for name, fault := range map[string]apisim.Fault{
		"Stall":     apisim.Stall(0, 0),
		"Delay":     apisim.Delay(time.Hour),
		"Drop":      apisim.Drop(),
		"CutBefore": apisim.CutBefore(0),
		"Refuse":    apisim.Refuse(http.StatusTooManyRequests, time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *world) {
				a := t.start(options("a"), 0)
				term, _ := t.term(a, 0)
				for range 10 {
					injected := t.server.Inject(by("a", "update").Nth(1), fault)
					time.Sleep(10 * time.Second)
					injected.Lift()
				}
				if err := term.Err(); err != nil {
					t.Errorf("a renewal that fails ends the term: %v", err)
				}
			})
		})
	}
}

// TestC10_TheLargerClockCounts has a boot clock that jumps, as after a machine was suspended.
func TestC10_TheLargerClockCounts(t *testing.T) {
	bubble(t, func(t *world) {
		var suspended atomic.Int64
		a := t.elector(options("a"))
		a.clock = lease.Clock{Boot: func() time.Duration { return time.Duration(suspended.Load()) }}
		var term *Term
		t.run(a, func(ctx context.Context, opened *Term) error {
			term = opened
			suspended.Add(int64(fence - time.Second))
			if left := term.Remaining(); left != time.Second {
				t.Errorf("%v are left, want a second", left)
			}
			suspended.Add(int64(time.Second))
			if left := term.Remaining(); left != 0 {
				t.Errorf("%v are left at the fence", left)
			}
			t.wantErr(term.Err(), ErrDeadline)
			<-ctx.Done()
			t.wantErr(context.Cause(ctx), ErrDeadline)
			return errLead
		})
		<-a.done
		t.wantErr(a.err, errLead)
	})
}

func TestC10_ASuspendedHolderNoticesWithinASecond(t *testing.T) {
	bubble(t, func(t *world) {
		began := time.Now()
		var term *Term
		a := t.elector(options("a"))
		// The boot clock is an hour ahead after five seconds.
		a.clock = lease.Clock{Boot: func() time.Duration {
			if passed := time.Since(began); passed > 5*time.Second {
				return passed + time.Hour
			}
			return time.Since(began)
		}}
		t.run(a, func(ctx context.Context, opened *Term) error {
			term = opened
			<-ctx.Done()
			t.wantBetween("the loss", time.Since(began), 5*time.Second, 6*time.Second)
			return errLead
		})
		<-a.done
		t.wantErr(term.Err(), ErrDeadline)
	})
}

func TestC10_ALateSuccessDoesNotReopenATerm(t *testing.T) {
	bubble(t, func(t *world) {
		var suspended atomic.Int64 // no timer notices it
		e := t.elector(options("a"))
		e.clock = lease.Clock{Boot: func() time.Duration { return time.Duration(suspended.Load()) }}
		sent := e.clock.Now()
		term := e.newTerm(t.Context(), "a", sent, nil)
		suspended.Store(int64(fence))
		term.Renewed(e.clock.Now())
		if term.Remaining() != 0 || !errors.Is(term.Err(), ErrDeadline) {
			t.Errorf("%v are left, %v", term.Remaining(), term.Err())
		}
	})
}

// TestC10_APausedHolderSendsNothingThatCounts delays all requests of a holder, as if its process
// had been paused after it had sent them.
func TestC10_APausedHolderSendsNothingThatCounts(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		first, _ := t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		pause := t.server.Inject(by("a", ""), apisim.Delay(time.Minute))
		second, span := t.term(b, 0)
		_, lost := t.term(a, 0)
		if lost.end.IsZero() || lost.end.After(span.begin) {
			t.Errorf("a's term ended at %v, b's began at %v", lost.end, span.begin)
		}
		pause.Lift()
		time.Sleep(time.Minute)
		if first.Err() == nil || second.Err() != nil {
			t.Errorf("a: %v, b: %v", first.Err(), second.Err())
		}
	})
}
