package tidings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

func TestP03_SnapshotAndCacheHaveTheirVersions(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		held, before := w.probe.snapshot(), w.serverState()
		heldVersion, _ := held()
		w.update("a", "2")
		w.create("b", "1")
		synctest.Wait()
		if v, state := held(); v != heldVersion || v == "" || !maps.Equal(state, before) {
			w.Errorf("the snapshot of version %s has %v at %s, want %v",
				heldVersion, state, v, before)
		}
		if v, _ := w.probe.snapshot()(); v != w.versions["b"] {
			w.Errorf("the cache has version %s, the last write %s", v, w.versions["b"])
		}
		// The version of the cache moves with the batch of a relist.
		heldVersion, _ = w.probe.snapshot()()
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			if v, _ := w.probe.snapshot()(); v != heldVersion {
				w.Errorf("during %s the cache has version %s", r.URL, v)
			}
			return false
		})
		w.server.SetAvailable(false)
		w.remove("a")
		w.create("c", "1")
		w.server.Compact()
		w.server.SetAvailable(true)
		w.settle()
		if v, _ := w.probe.snapshot()(); v != w.versions["c"] || w.health().Lists != 2 {
			w.Errorf("after list %d the cache has version %s, want %s", w.health().Lists, v,
				w.versions["c"])
		}
	})
}

func TestP10_HealthOfHandlers(t *testing.T) {
	property(t, func(w *world) {
		w.create("hot", "0")
		w.start()
		began := time.Now()
		var told follow.Follower
		told.Block()
		r := w.probe.handle(told.Handle, tidings.HandlerOptions{Name: "stuck", Limit: 10})
		synctest.Wait()
		if h := r.Health(); h.State != tidings.HandlerBusy || !h.RunningSince.Equal(began) {
			w.Errorf("in the initial set health is %+v", h)
		}
		for i := range 100 {
			w.update("hot", fmt.Sprint(i+1))
			w.create(fmt.Sprint("object-", i), "1")
			synctest.Wait()
		}
		h := r.Health()
		if h.Running != "default/hot" || h.Folded == 0 ||
			h.State != tidings.HandlerBehind && h.State != tidings.HandlerStuck {
			w.Errorf("behind health is %+v", h)
		}
		told.Unblock()
		synctest.Wait()
		if h := r.Health(); h.State != tidings.HandlerIdle || h.Pending != 0 {
			w.Errorf("after it caught up health is %+v", h)
		}
	})
}

func TestP10_BlockHoldsUpTheCacheUntilTheHandlerReturns(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told follow.Follower
		told.Block()
		r := w.probe.handle(told.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 3})
		w.create("a", "0")
		for i := range 20 {
			w.update("a", fmt.Sprint(i+1))
			synctest.Wait()
		}
		if got := w.probe.get("default/a"); got == w.serverState()["default/a"] {
			w.Error("the cache went on although a handler with the policy Block is stuck")
		}
		told.Unblock()
		synctest.Wait()
		w.agree()
		if n := told.Calls(); n != 21 || r.Health().Folded != 0 {
			w.Errorf("%d calls, want 21; health %+v", n, r.Health())
		}
	})
}

func TestP10_StopGetsPastAHandlerThatBlocksTheCache(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told follow.Follower
		told.Block()
		w.probe.handle(told.Handle, tidings.HandlerOptions{Policy: tidings.PolicyBlock, Limit: 1})
		for i := range 10 {
			w.create(fmt.Sprint("object-", i), "1")
			synctest.Wait()
		}
		w.stop()
		err := w.factory.Shutdown(context.Background())
		if !errors.Is(err, tidings.ErrHandlersStuck) {
			w.Errorf("Shutdown: %v", err)
		}
		told.Unblock()
		w.stuck = true
	})
}

// TestP13_WaitNamesInformersAndReasons refuses every request, with and without FailFast.
func TestP13_WaitNamesInformersAndReasons(t *testing.T) {
	tests := map[string]struct {
		code   int
		reason string
		state  tidings.State
		says   string
		fast   bool // FailFast ends the wait
	}{
		"forbidden":   {403, "Forbidden", tidings.StateForbidden, "grant list and watch on", true},
		"missing":     {404, "NotFound", tidings.StateNoSuchResource, "CustomResourceDefinition", true},
		"broken":      {500, "InternalError", tidings.StateBackoff, "you shall not pass", false},
		"overwhelmed": {429, "TooManyRequests", tidings.StateBackoff, "you shall not pass", false},
	}
	for name, test := range tests {
		for _, failFast := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", FailFast ", failFast), func(t *testing.T) {
				o, s := tidings.FactoryOptions{FailFast: failFast}, tidings.Selection{Namespace: "default"}
				propertyWith(t, o, s, func(w *world) {
					w.create("a", "1")
					w.gate.set(refuse(test.code, test.reason))
					w.must(w.factory.Start(w.ctx))
					ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
					defer cancel()
					began := time.Now()
					err := w.factory.WaitForSync(ctx)
					took, fast := time.Since(began), failFast && test.fast
					if fast != (took < time.Second) ||
						fast == errors.Is(err, context.DeadlineExceeded) {
						w.Errorf("the wait took %v: %v", took, err)
					}
					notSynced, ok := errors.AsType[*tidings.NotSyncedError](err)
					if !ok {
						w.Fatalf("got %v", err)
					}
					name := w.probe.informer().Name()
					h := notSynced.Informers[0]
					if h.Name != name || h.State != test.state || h.LastError == nil {
						w.Errorf("the error has %+v", h)
					}
					for _, part := range []string{name, string(test.state), test.says, "configmaps"} {
						if !strings.Contains(err.Error(), part) {
							w.Errorf("the error does not say %q: %v", part, err)
						}
					}
					// A wait for one informer does not fail fast.
					ctx, cancel = context.WithTimeout(w.ctx, time.Second)
					defer cancel()
					expectError(w, "WaitForSync", w.probe.informer().WaitForSync(ctx),
						context.DeadlineExceeded)
					w.gate.set(nil)
					w.settle()
					w.agree()
				})
			})
		}
	}
}

func TestP14_WaitForNamesTheVersion(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		err := w.probe.informer().WaitFor(ctx, "999999999")
		expectError(w, "waiting for the future", err, context.DeadlineExceeded, "999999999")
		if err := w.probe.informer().WaitFor(ctx, "soon"); err == nil {
			w.Error("WaitFor accepts a version that is no number")
		}
	})
}

// TestP20_ObjectsOutsideTheSelectionNeverReachTheCache has a server that ignores selectors.
func TestP20_ObjectsOutsideTheSelectionNeverReachTheCache(t *testing.T) {
	s := tidings.Selection{Namespace: "default", Labels: "n=1", Fields: "metadata.name=in"}
	propertyWith(t, tidings.FactoryOptions{}, s, func(w *world) {
		w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
			query := r.URL.Query()
			query.Del("fieldSelector")
			if query.Get("labelSelector") != "n=1" {
				w.Errorf("the server was asked for %q", query)
			}
			query.Del("labelSelector")
			r.URL.RawQuery = query.Encode()
			return false
		})
		w.create("in", "1")
		w.create("out", "2")
		w.create("other", "1")
		l := w.follow()
		w.start()
		w.create("later", "2")
		w.update("in", "2")
		synctest.Wait()
		expect(w, l.Texts(), "Added default/in initial 1", "Deleted default/in tombstone 1")
		h := w.health()
		if h.Dropped != 4 || !strings.Contains(fmt.Sprint(h.LastDropped), "default/in") {
			w.Errorf("dropped %d, the last: %v", h.Dropped, h.LastDropped)
		}
	})
}
