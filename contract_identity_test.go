package tidings_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/delta"
)

func TestP19_AnotherObjectUnderTheSameKey(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		first := w.uids["a"]
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{})
		w.start()
		told.take()

		// Within one watch, the server sends both the delete and the add.
		w.remove("a")
		w.create("a", "2")
		synctest.Wait()
		events := told.take()
		if len(events) != 2 || events[0].Type != tidings.Deleted || events[0].OldUID != first || events[1].NewUID == first {
			w.Fatalf("told %v", events)
		}
		if order, ok := delta.CompareDecimal(version(events[0].Old), version(events[1].New)); !ok || order >= 0 || events[0].Tombstone {
			w.Errorf("the delete carries version %s, the add after it %s", version(events[0].Old), version(events[1].New))
		}

		// A relist finds only that the object is another one.
		second := w.uids["a"]
		w.server.Restart(apisim.RestartOptions{Down: time.Second})
		w.remove("a")
		w.create("a", "3")
		w.server.Compact()
		w.settle()
		events = told.take()
		if len(events) != 1 || events[0].Type != tidings.Updated || events[0].OldUID != second || events[0].NewUID != w.uids["a"] {
			w.Errorf("told %v", events)
		}
	})
}

func TestP20_RunningTwiceChangesNothing(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		if err := w.probe.informer().Run(w.ctx); !errors.Is(err, tidings.ErrRanAlready) || !strings.Contains(err.Error(), w.probe.informer().Name()) {
			w.Errorf("Run of a running informer: %v", err)
		}
		if err := w.factory.Start(w.ctx); err != nil {
			w.Errorf("Start again: %v", err)
		}
		w.update("a", "2")
		synctest.Wait()
		w.agree()
	})
}

func TestP20_ObjectsOutsideTheSelectionNeverReachTheCache(t *testing.T) {
	// A server that does not know selectors sends everything.
	propertyWith(t, tidings.FactoryOptions{}, tidings.Selection{Namespace: "default", Labels: "n=1"}, func(w *world) {
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			query := r.URL.Query()
			if query.Get("labelSelector") != "n=1" {
				w.Errorf("the server was asked for %q", query)
			}
			query.Del("labelSelector")
			r.URL.RawQuery = query.Encode()
			return false
		})
		w.create("in", "1")
		w.create("out", "2")
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{})
		w.start()
		w.create("later", "2")
		w.update("in", "2")
		synctest.Wait()
		expect(w, told.texts(), "Added default/in initial 1", "Deleted default/in tombstone 1")
		if h := w.probe.informer().Health(); h.Dropped != 3 || h.LastDropped == nil || !strings.Contains(h.LastDropped.Error(), "default/in") {
			w.Errorf("dropped %d, the last: %v", h.Dropped, h.LastDropped)
		}
	})
}
