package shard

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// TestS2_WritesOfTheMapWithoutAnAnswer: the server answers the renewals of b, and no write of the
// map by b, which owns slots that are to move.
func TestS2_WritesOfTheMapWithoutAnAnswer(t *testing.T) {
	for _, name := range []string{"a", "b"} { // a plans
		t.Run(name, func(t *testing.T) {
			bubble(t, func(w *world) {
				a, b, c := w.three()
				match := by(name, "update")
				match.Name = "rollout"
				fault := w.server.Inject(match, apisim.Drop())
				at := time.Now()
				d := w.start("d", "1")
				time.Sleep(3 * time.Minute)
				w.covered(a, b, c, d)
				// What had drained when the first write was lost waits for the end.
				w.wantBetween("the longest gap", w.longestGap(at), 0, 38*time.Second)
				if d.serves() < Count/8 {
					t.Errorf("d serves %d slots", d.serves())
				}
				fault.Lift()
				time.Sleep(5 * time.Minute)
				w.covered(a, b, c, d)
				w.wantServing("once they are answered", 51, 77, a, b, c, d)
			})
		})
	}
}

// TestS5_LeasesThatCannotBeEndedHoldUpNoOther: the server refuses the writes of the Leases of ten
// dead members.
func TestS5_LeasesThatCannotBeEndedHoldUpNoOther(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		for i := range 10 {
			dead := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ops", Name: fmt.Sprint("rollout.dead-", i), Labels: map[string]string{groupLabel: "rollout"},
			}}
			lease.Take(dead, dead.Name, 15)
			r := handover.Record{Name: dead.Name, Generation: "1", State: handover.Takes}
			if err := writeRecord(dead, r); err != nil {
				t.Fatal(err)
			}
			if _, err := apisim.Create(w.Context(), w.server, dead); err != nil {
				t.Fatal(err)
			}
			match := by("", "update")
			match.Name = dead.Name
			w.server.Inject(match, apisim.Refuse(http.StatusForbidden, 0))
		}
		time.Sleep(time.Minute)
		d := w.start("d", "1")
		time.Sleep(time.Minute)
		w.wantServing("after the join", 51, 77, a, b, c, d)
		left := time.Now()
		b.leave()
		w.wantBetween("the leave", time.Since(left), 0, 5*time.Second)
		w.covered(a, c, d)
		w.wantBetween("the longest gap", w.longestGap(left), 0, 2*time.Second)
	})
}
