package shard

import (
	"testing"
	"testing/synctest"

	coordinationv1 "k8s.io/api/coordination/v1"

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
