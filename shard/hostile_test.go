package shard

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/internal/lease"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// TestS1_ATurnSeesOneState: a Lease that changes during a turn of the loop does not change what the turn
// has seen.
func TestS1_ATurnSeesOneState(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		id := handover.ID(b.Health().Identity)
		seen := a.present.look().records[id]
		before := *seen
		w.write(string(id), func(l *coordinationv1.Lease) {
			if err := writeRecord(l, handover.Record{Name: l.Name, State: handover.Declines}); err != nil {
				t.Fatal(err)
			}
		})
		synctest.Wait()
		if seen.State != before.State || len(seen.Weights) != len(before.Weights) {
			t.Errorf("the record is %+v, and was %+v", *seen, before)
		}
	})
}

// TestS3_ASlotThatCannotBeFilledHoldsUpNoOther: no member can list the objects of slot 7 any more, as when
// the rights for a namespace are gone. Its owner crashes.
func TestS3_ASlotThatCannotBeFilledHoldsUpNoOther(t *testing.T) {
	bubble(t, func(w *world) {
		a, b, c := w.three()
		all := map[*process]bool{a: true, b: true, c: true}
		for p := range all {
			p.set(func(p *process) { p.unlistable = slot.Of(7) })
		}
		for p := range all {
			if p.calls().Has(7) {
				p.crash()
				delete(all, p)
			}
		}
		time.Sleep(duration + 2*time.Second + 10*time.Second)
		n := 0
		for p := range all {
			n += p.serves()
		}
		if n != Count-1 {
			t.Errorf("%d slots are served", n)
		}
		time.Sleep(10 * time.Minute)
		for p := range all {
			n -= p.serves()
		}
		if n != 0 {
			t.Errorf("%d more slots are not served after ten minutes", n)
		}
		for p := range all {
			p.set(func(p *process) { p.unlistable = Set{} })
		}
		time.Sleep(15 * time.Minute)
		n = 0
		for p := range all {
			n += p.serves()
		}
		if n != Count {
			t.Errorf("%d slots are served once all can be listed", n)
		}
	})
}

// TestS2_WritesOfTheMapWithoutAnAnswer: the server answers the renewals of b, and no write of the map by b,
// which owns slots that are to move.
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

// TestS4_ALeaverWaitsWithoutHaste: its calls run on after the end of their contexts. It looks at them as
// often as while slots move.
func TestS4_ALeaverWaitsWithoutHaste(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.two()
		called := a.calls()
		a.call(called, forever)
		a.set(func(p *process) { p.ignores = true })
		a.stop()
		time.Sleep(19 * time.Second)
		a.set(func(p *process) { p.asked = 0 })
		time.Sleep(5 * time.Second)
		a.set(func(p *process) {
			if n := p.asked / called.Len(); n > 2*int(5*time.Second/soon) {
				t.Errorf("it has asked %d times for the calls of each slot in 5 s", n)
			}
		})
		a.Wait() //nolint:errcheck // calls still run
		time.Sleep(time.Minute)
		w.covered(b)
	})
}

// TestS5_LeasesThatCannotBeEndedHoldUpNoOther: the server refuses the writes of the Leases of ten dead
// members.
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

// TestS5_AMemberWhoseOnlyWorkerHangs moves its slots once: it takes none before the call has ended, although
// no key waits for it any more.
func TestS5_AMemberWhoseOnlyWorkerHangs(t *testing.T) {
	inOneFleet(t, fleetNamespaces, true, func(f *fleet) { // one for each slot
		f.workers = 1
		a, b := f.two(controller.ByNamespace)
		for i := range f.objects {
			if b.serves().Has(controller.ByNamespace.Of("", namespaceOf(i))) {
				b.set(func(r *replica) { r.takes = 2 * time.Hour })
				f.ask(i, 1)
				break
			}
		}
		time.Sleep(time.Second)
		b.set(func(r *replica) { r.takes = 0 })
		before := a.Map()
		f.askAll(2)
		time.Sleep(50 * time.Minute)
		moves, most := 0, uint64(0)
		for i, e := range a.Map() {
			n := e.Epoch - before[i].Epoch
			moves, most = moves+int(n), max(most, n)
		}
		if moves == 0 || most > 1 {
			t.Errorf("%d moves, up to %d of a slot: %+v", moves, most, a.Health().Members)
		}
	})
}

// TestHealthRightAfterJoin reads the times of a group that has just begun, for the race detector.
func TestHealthRightAfterJoin(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1")
		for range 100 {
			if h := a.Health(); h.State != Joining {
				t.Errorf("the health is %+v", h)
			}
		}
		w.covered(a)
	})
}

// TestS2_AMapThatIsAheadOfTheLeases: the watch of b is late, and b reads the map after a conflict. The next
// owner that it names was refused, in the Lease that b knows, and takes by now.
func TestS2_AMapThatIsAheadOfTheLeases(t *testing.T) {
	bubble(t, func(w *world) {
		w.server.Inject(by("b", "watch"), apisim.Stall(apisim.EachFrame, 300*time.Millisecond))
		a, b, c := w.three()
		refused := by("", "update")
		refused.Name = "rollout"
		refusal := w.server.Inject(refused, apisim.Refuse(http.StatusForbidden, 0))
		d := w.start("d", "1")
		time.Sleep(10 * time.Minute)
		refusal.Lift()
		time.Sleep(5 * time.Minute)
		w.covered(a, b, c, d)
		w.wantServing("once they are accepted", 51, 77, a, b, c, d)
	})
}
