package shard

import (
	"errors"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

func TestS1_ABrokenMapThatIsDeletedIsMadeAnew(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "1 {" })
		time.Sleep(time.Second)
		if h := a.Health(); h.Map == nil {
			t.Fatalf("%d and %d slots are served: %+v", a.serves(), b.serves(), h)
		}
		w.restored = true
		w.remove("rollout")
		w.wantBetween("the new map", w.covered(a, b), 0, 2*duration)
		if h := a.Health(); h.Map != nil {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_AMemberThatSeesNoMapPlansNothing has a member with the lowest identity that may write
// Leases, but not list or watch them.
func TestS1_AMemberThatSeesNoMapPlansNothing(t *testing.T) {
	bubble(t, func(w *world) {
		for _, verb := range []string{"list", "watch"} {
			w.server.Inject(by("a", verb), apisim.Refuse(http.StatusForbidden, 0))
		}
		w.start("a", "1")
		time.Sleep(time.Second)
		b := w.start("b", "1")
		w.covered(b)
		c := w.start("c", "1")
		time.Sleep(2 * time.Minute)
		w.covered(b, c)
		if n := c.serves(); n < Count/3 {
			t.Errorf("c serves %d slots, and %q plans", n, b.Health().Planner)
		}
		w.wantProblems(w.read(), "The member rollout.a-")
	})
}

// TestS1_AWatchThatIsSilentIsBegunAnew: a member that is alone notices another one.
func TestS1_AWatchThatIsSilentIsBegunAnew(t *testing.T) {
	bubble(t, func(w *world) {
		silence := w.server.Inject(by("a", "watch").Nth(1), apisim.Stall(1, 0))
		a := w.start("a", "1")
		w.covered(a)
		b := w.start("b", "1")
		time.Sleep(time.Minute)
		w.covered(a, b)
		if n := b.serves(); n < Count/3 {
			t.Errorf("b serves %d slots", n)
		}
		silence.Lift()
	})
}

// TestS2_AWatchThatFailsIsReplacedByLists: a member whose watches fail for long takes part.
func TestS2_AWatchThatFailsIsReplacedByLists(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		w.server.Inject(by("b", "watch"), apisim.Refuse(http.StatusInternalServerError, 0))
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		if n := b.serves(); n < Count/3 {
			t.Errorf("b serves %d slots: %+v", n, a.Health())
		}
	})
}

// TestS3_APageOfAProxyIsNoEnd: an error page of a proxy does not mean that a Lease, or the map, is
// gone.
func TestS3_APageOfAProxyIsNoEnd(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusConflict, http.StatusForbidden, http.StatusGone} {
		bubble(t, func(w *world) {
			a, b := w.two()
			fault := w.server.Inject(by("", ""), leasetest.Page(code))
			w.server.CutConnections()
			time.Sleep(5 * time.Second)
			fault.Lift()
			time.Sleep(10 * time.Second)
			w.covered(a, b)
			if len(a.terms) != 1 || len(b.terms) != 1 {
				t.Errorf("%d: there were %d and %d terms: %v", code, len(a.terms), len(b.terms), a.terms[0].Err())
			}
		})
	}
}

// TestS2_AMapWithoutItsLabelIsRepaired removes the label by which the Leases are watched.
func TestS2_AMapWithoutItsLabelIsRepaired(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		w.write("rollout", func(l *coordinationv1.Lease) { delete(l.Labels, groupLabel) })
		time.Sleep(time.Minute)
		w.covered(a, b)
		time.Sleep(5 * time.Minute)
		if n := min(a.serves(), b.serves()); n < Count/3 || w.lease("rollout").Labels[groupLabel] == "" {
			t.Errorf("a member serves %d slots", n)
		}
	})
}

// TestS1_ARestoredBackupHasOneOwner has a server that loses all changes since a member joined: the
// map is an older one, in which the other member owns all slots. The member reads it late.
func TestS1_ARestoredBackupHasOneOwner(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		backup := w.server.Snapshot()
		b := w.start("b", "1")
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		for _, verb := range []string{"list", "get"} {
			w.server.Inject(by("b", verb), apisim.Delay(2*time.Second))
		}
		w.server.Rewind(backup)
		w.restored = true
		restored := time.Now()
		w.covered(a, b)
		w.wantBetween("the restart", time.Since(restored), 0, 3*duration)
		time.Sleep(5 * time.Minute)
		w.covered(a, b)
		if n := min(a.serves(), b.serves()); n < Count/3 {
			t.Errorf("a member serves %d slots", n)
		}
	})
}

// TestS4_AnOlderMemberThatJoinsAnewIsNoNewerVersion has a member of the older generation that loses
// its Lease during an update: what another one leaves goes to the newer generation.
func TestS4_AnOlderMemberThatJoinsAnewIsNoNewerVersion(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		time.Sleep(15 * time.Minute)
		c := w.start("c", "2")
		time.Sleep(5 * time.Second)
		w.remove(b.Health().Identity)
		time.Sleep(3 * duration)
		w.covered(a, b, c)
		a.leave()
		if w.covered(b, c); c.serves() < Count/2 {
			t.Errorf("the newer generation has %d slots", c.serves())
		}
	})
}

// TestS1_AMapOfALaterFormatEndsItsMembers: they say why, and leave it as it is.
func TestS1_AMapOfALaterFormatEndsItsMembers(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "2 x" })
		for _, p := range []*process{a, b} {
			if err := p.Wait(); !errors.Is(err, handover.ErrFormat) || len(p.left) != 1 || p.left[0] == nil {
				t.Errorf("%s ended with %v", p.name, err)
			}
		}
		if text := w.lease("rollout").Annotations[entriesAnnotation]; text != "2 x" {
			t.Errorf("the map is %.40q", text)
		}
	})
}

// TestS1_AMapOfALaterFormatInALeaseOfAnElection is not made anew, once the election is over.
func TestS1_AMapOfALaterFormatInALeaseOfAnElection(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		w.covered(a)
		a.leave()
		w.write("rollout", func(l *coordinationv1.Lease) {
			l.Annotations[entriesAnnotation] = "2 x"
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new("candidate"), new(int32(15))
		})
		b := w.start("b", "1")
		if err := b.Wait(); !errors.Is(err, handover.ErrFormat) {
			t.Errorf("b ended with %v", err)
		}
		if text := w.lease("rollout").Annotations[entriesAnnotation]; text != "2 x" {
			t.Errorf("the map is %.40q", text)
		}
	})
}
