package shard

import (
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
)

// TestS1_AMapThatSomebodyEmpties is a map that was deleted: all join anew, and make another one.
func TestS1_AMapThatSomebodyEmpties(t *testing.T) {
	for name, change := range map[string]func(*coordinationv1.Lease){
		"empty":   func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "" },
		"removed": func(l *coordinationv1.Lease) { l.Annotations = nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				w.restored = true
				a, b, c := w.three()
				w.write("rollout", change)
				time.Sleep(time.Minute)
				w.covered(a, b, c)
				if len(a.terms) != 2 {
					t.Errorf("a has had %d terms", len(a.terms))
				}
			})
		})
	}
}

// TestS1_AMapThatCannotBeRead ends nobody: its owners call on, and all say it.
func TestS1_AMapThatCannotBeRead(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		w.write("rollout", func(l *coordinationv1.Lease) { l.Annotations[entriesAnnotation] = "1 garbage" })
		time.Sleep(time.Minute)
		w.covered(a, b, c)
		if h := a.Health(); h.Map == nil || len(a.terms) != 1 {
			t.Errorf("a has had %d terms: %v", len(a.terms), h.Map)
		}
	})
}

// TestS1_AnElectionOfTheGroupsName waits while members live: they hold the Lease. The last one
// releases it.
func TestS1_AnElectionOfTheGroupsName(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1"), w.start("b", "1")
		time.Sleep(50 * time.Minute)
		held := func() (holder string, left time.Duration) {
			l := w.lease("rollout")
			return lease.HolderOf(l), time.Duration(*l.Spec.LeaseDurationSeconds)*time.Second - time.Since(l.Spec.RenewTime.Time)
		}
		if holder, left := held(); holder != holderOfMap("rollout") || left < holdsMapFor/2 {
			t.Errorf("%q holds the map's Lease, for %v", holder, left)
		}
		a.leave()
		time.Sleep(time.Second)
		if holder, _ := held(); holder == "" {
			t.Error("b lives, and the map's Lease is released")
		}
		b.leave()
		if holder, _ := held(); holder != "" {
			t.Errorf("nobody lives, and %q holds the map's Lease", holder)
		}

		w.write("rollout", func(l *coordinationv1.Lease) { // an election takes it
			l.Spec.HolderIdentity, l.Spec.LeaseDurationSeconds = new("another"), new(int32(15))
			l.Spec.RenewTime = new(metav1.NowMicro())
		})
		c := w.start("c", "1")
		time.Sleep(10 * time.Second)
		if h := c.Health(); h.Map == nil || c.serves() > 0 {
			t.Errorf("beside the election c serves %d slots: %v", c.serves(), h.Map)
		}
		time.Sleep(20 * time.Second) // it runs out
		w.covered(c)
	})
}

// TestS2_ALeaverAfterARefusal: the server refuses one write of the map by a member that then
// leaves.
func TestS2_ALeaverAfterARefusal(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		match := by("a", "update")
		match.Name = "rollout"
		w.server.Inject(match.Nth(1), apisim.Refuse(http.StatusInternalServerError, 0))
		began := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(began), 0, 4*time.Second)
		w.covered(b, c)
		w.wantBetween("the longest gap", w.longestGap(began), 0, 2*time.Second)
	})
}

// TestS2_AMemberThatSeesNothingInheritsNothing: b renews its Lease, and can neither watch nor list.
func TestS2_AMemberThatSeesNothingInheritsNothing(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for _, verb := range []string{"list", "watch"} {
			w.server.Inject(by("b", verb), apisim.Refuse(http.StatusInternalServerError, 0))
		}
		w.server.CutConnections()
		time.Sleep(2 * time.Minute)
		if m := memberOf(c.Health(), b); !m.Live || !m.Refused {
			t.Errorf("b is %+v", m)
		}
		served := b.serves()
		a.leave()
		w.covered(b, c)
		if b.serves() != served {
			t.Errorf("b serves %d slots, and had %d", b.serves(), served)
		}
	})
}
