package tidings_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// TestP18_WatchThatIsDroppedUnansweredIsAFailure has connections break before they are
// answered, at once and after a while, as a balancer does that has no server behind it.
// The guard is that ended takes io.EOF for the good end of a watch only if it was open.
func TestP18_WatchThatIsDroppedUnansweredIsAFailure(t *testing.T) {
	for name, held := range map[string]time.Duration{"at once": 10 * time.Millisecond, "after two seconds": 2 * time.Second} {
		t.Run(name, func(t *testing.T) {
			property(t, func(w *world) {
				l := w.has("a", "b")
				w.server.ForgetRequests()
				drops := w.inject(apisim.Match{}, apisim.Delay(held), apisim.Drop())
				w.server.CutConnections()
				w.update("a", "2")
				w.remove("b")
				w.after(5 * time.Minute)
				if n := len(w.server.Requests()); n < 5 || n > 35 {
					w.Errorf("%d requests in five minutes", n)
				}
				if h := w.probe.informer().Health(); h.State != tidings.Backoff {
					w.Errorf("health is %s after %v", h.State, h.LastError)
				}
				l.says("is the API server reachable?")
				drops.Lift()
				w.settle()
				l.agrees()
				l.lists(1)
			})
		})
	}
}

// TestP16_RestoredBackupBehindDroppedConnectionsIsFound restores an older state while
// connections break before they are answered: the watch that is resumed then waits for
// a version that is far away.
func TestP16_RestoredBackupBehindDroppedConnectionsIsFound(t *testing.T) {
	propertyWith(t, tidings.FactoryOptions{}, tidings.Selection{Namespace: "default"}, func(w *world) {
		l := w.has("a", "b")
		backup := w.server.Snapshot()
		for range 20 {
			w.create("c", "1")
			w.remove("c")
		}
		w.remove("b")
		synctest.Wait()
		drops := w.inject(apisim.Match{}, apisim.Drop())
		w.server.Rewind(backup)
		w.after(time.Minute)
		drops.Lift()
		w.after(time.Minute)
		l.agrees()
	})
}
