package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

func TestC11_APlannedTakeOverTakesLessThanASecond(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		first, _ := t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(time.Minute)
		synctest.Wait()
		if err := first.Err(); err != nil {
			t.Fatalf("a lost its term: %v", err)
		}
		stopped := time.Now()
		a.stop()
		<-a.done
		_, span := t.term(b, 0)
		t.wantBetween("the take-over", span.begin.Sub(stopped), 0, 250*time.Millisecond)
		if a.err != nil {
			t.Errorf("Run returned %v", a.err)
		}
		t.wantErr(first.Err(), ErrReleased)
	})
}

func TestC11_ACrashedHolderIsReplacedAfterItsDuration(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		first, _ := t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(time.Minute)
		crashed := time.Now()
		t.server.Inject(by("a", ""), apisim.Drop())
		_, span := t.term(b, 0)
		took := span.begin.Sub(crashed)
		t.wantBetween("the take-over", took, duration-a.o.Renew, duration+250*time.Millisecond)
		t.wantErr(first.Err(), ErrDeadline)
		_, lost := t.term(a, 0)
		t.wantBetween("the gap", span.begin.Sub(lost.end), duration/5,
			duration/5+250*time.Millisecond)
	})
}

func TestC09_TheLeaseIsReleasedAfterLeadHasReturned(t *testing.T) {
	bubble(t, func(t *world) {
		o := options("a")
		o.Grace = time.Minute
		a := t.start(o, 40*time.Second)
		t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		t.server.ForgetRequests()
		stopped := time.Now()
		a.stop()
		time.Sleep(39 * time.Second)
		if h := a.Health(); h.State != Draining || h.Remaining < 9*time.Second {
			t.Errorf("while it drains, a is %+v", h)
		}
		// One renewal every three seconds.
		if n := len(t.server.Requests().Of(by("a", "update"))); n < 12 || n > 14 {
			t.Errorf("%d renewals while a drained, want 13", n)
		}
		_, span := t.term(b, 0)
		t.wantBetween("the take-over", span.begin.Sub(stopped), 40*time.Second,
			40*time.Second+250*time.Millisecond)
	})
}

func TestC09_NothingIsReleasedWhenADrainDoesNotEnd(t *testing.T) {
	bubble(t, func(t *world) {
		o := options("a")
		o.Grace = 10 * time.Second
		a := t.start(o, 30*time.Second)
		first, _ := t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(10 * time.Second)
		stopped := time.Now()
		a.stop()
		<-a.done
		t.wantErr(a.err, ErrStragglers)
		t.wantErr(first.Err(), ErrStragglers)
		t.wantBetween("the drain", time.Since(stopped), o.Grace, o.Grace)
		if holder := lease.HolderOf(t.lease()); holder != first.Identity() {
			t.Errorf("the holder is %q after the drain, want %q", holder, first.Identity())
		}
		_, span := t.term(b, 0)
		t.wantBetween("the take-over", span.begin.Sub(stopped), o.Grace+duration-3*time.Second,
			o.Grace+duration+250*time.Millisecond)
		time.Sleep(10 * time.Second) // until lead has returned
	})
}

func TestC09_ALeadThatNamesStragglersPreventsTheRelease(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.elector(options("a"))
		t.run(a, func(_ context.Context, term *Term) error {
			a.note(term)
			return ErrStragglers
		})
		first, _ := t.term(a, 0)
		<-a.done
		t.wantErr(a.err, ErrStragglers)
		if holder := lease.HolderOf(t.lease()); holder != first.Identity() {
			t.Errorf("the holder is %q, want %q", holder, first.Identity())
		}
	})
}

func TestC09_ALeadThatReturnsEndsRunAndReleases(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.elector(options("a"))
		t.run(a, func(context.Context, *Term) error { return errLead })
		<-a.done
		t.wantErr(a.err, errLead)
		if holder := lease.HolderOf(t.lease()); holder != "" {
			t.Errorf("the holder is %q, want none", holder)
		}
		if h := a.Health(); h.State != Stopped {
			t.Errorf("health says %+v after Run", h)
		}
	})
}

// TestC11_ALeaseThatIsTakenMeanwhileIsNotOverwritten has a candidate that finds the Lease free.
// Before it writes, another one takes the Lease.
func TestC11_ALeaseThatIsTakenMeanwhileIsNotOverwritten(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		b := t.elector(options("b"))
		if err := b.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		if term, _, err := b.take(t.Context()); term != nil || err != nil {
			t.Errorf("b took a's lease: %v, %v", term, err)
		}
		t.server.ExpectRequests(t, by("b", "update"), 0)
	})
}

// TestC11_AStandbyThatStopsWhileItWinsReleases has an answer to the winning write that comes
// after the end of the context.
func TestC11_AStandbyThatStopsWhileItWinsReleases(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		b := t.start(options("b"), 0)
		time.Sleep(time.Second)
		t.server.Inject(by("b", "update"), apisim.Stall(0, time.Second))
		a.stop()
		<-a.done
		time.Sleep(500 * time.Millisecond)
		b.stop()
		<-b.done
		if holder := lease.HolderOf(t.lease()); holder != "" {
			t.Errorf("nobody releases the lease of %s", holder)
		}
	})
}

func TestC11_StandbysDoNotStorm(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		for range 30 {
			t.start(options("standby"), 0)
		}
		time.Sleep(time.Minute)
		t.server.ForgetRequests()
		// A write takes 5 ms. Each standby that writes meanwhile has a conflict.
		t.server.Inject(by("standby", "update"), apisim.Delay(5*time.Millisecond))
		a.stop()
		<-a.done
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := len(t.server.Requests().Of(by("standby", "update"))); n == 0 || n > 10 {
			t.Errorf("30 standbys sent %d writes:\n%v", n, t.server.Requests())
		}
	})
}

func TestC11_ASilentWatchDelaysATakeOverByTheDuration(t *testing.T) {
	bubble(t, func(t *world) {
		a := t.start(options("a"), 0)
		t.term(a, 0)
		silence := t.server.Inject(by("b", "watch"), apisim.Stall(apisim.EachFrame, 0))
		b := t.start(options("b"), 0)
		// b reads the newer record when the one that it has observed is over.
		time.Sleep(time.Minute)
		if n := len(t.server.Requests().Of(by("b", "watch"))); n < 3 || n > 6 {
			t.Errorf("b watched %d times in a minute:\n%v", n, t.server.Requests().Of(by("b", "")))
		}
		stopped := time.Now()
		a.stop()
		_, span := t.term(b, 0)
		t.wantBetween("the take-over", span.begin.Sub(stopped), 0, duration+2*time.Second)
		silence.Lift()
	})
}
