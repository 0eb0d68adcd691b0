package election

import (
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/logtable"
)

// TestLogs makes electors log each line of docs/logs.md, and no other: one whose requests fail for
// a while, one that loses its Lease to another holder, and one whose server cannot be reached at
// the end.
func TestLogs(t *testing.T) {
	lines := logtable.New("lease")
	logged := func(name string) Options {
		o := options(name)
		o.Logger = lines.Logger()
		return o
	}
	bubble(t, func(w *world) {
		o := logged("a")
		o.OnNewLeader = func(string) { panic("a test") }
		c := w.start(o, 0)
		w.term(c, 0)
		failing := w.server.Inject(by("a", ""), apisim.Refuse(http.StatusServiceUnavailable, 0))
		time.Sleep(duration / 2)
		failing.Lift()
		time.Sleep(duration)
		c.stop()
		<-c.done
	})
	bubble(t, func(w *world) {
		c := w.start(logged("a"), 0)
		term, _ := w.term(c, 0)
		w.change(func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = new("another") })
		<-term.Done()
		time.Sleep(time.Second)
	})
	bubble(t, func(w *world) {
		c := w.start(logged("a"), 0)
		w.term(c, 0)
		w.server.SetAvailable(false)
		c.stop()
		<-c.done
	})
	if err := lines.Compare("../../docs/logs.md", "Elections"); err != nil {
		t.Error(err)
	}
}
