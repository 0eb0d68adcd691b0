package shard

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/shard/internal/handover"
)

// TestS1_ATurnSeesOneState: a Lease that changes during a turn of the loop does not change what the
// turn has seen.
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

// TestS1_AMemberInheritsOnceItsLeaseSaysSo: others would clear what it gives to itself before.
func TestS1_AMemberInheritsOnceItsLeaseSaysSo(t *testing.T) {
	bubble(t, func(w *world) {
		a, _ := w.two()
		id := handover.ID(a.Health().Identity)
		inherits := func() bool { return a.present.look().peers[id].Inherits() }
		if !inherits() {
			t.Error("it does not inherit")
		}
		for name, r := range map[string]handover.Record{
			"declines": {Name: string(id), State: handover.Declines},
			"refused":  {Name: string(id), State: handover.Takes, Refused: true},
		} {
			w.write(string(id), func(l *coordinationv1.Lease) {
				if err := writeRecord(l, r); err != nil {
					t.Fatal(err)
				}
			})
			synctest.Wait()
			if inherits() {
				t.Errorf("%s: it inherits before its next renewal", name)
			}
			time.Sleep(duration)
			if !inherits() {
				t.Errorf("%s: it does not inherit after a renewal", name)
			}
		}
	})
}

// TestS2_AMapThatIsAheadOfTheLeases: the watch of b is late, and b reads the map after a conflict.
// The next owner that it names was refused, in the Lease that b knows, and takes by now.
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
