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
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/delta"
)

func TestP01_CacheHoldsWhatTheServerHolds(t *testing.T) {
	property(t, func(w *world) {
		w.create("before", "1")
		w.start()
		w.agree()
		w.create("after", "1")
		w.update("before", "2")
		w.remove("after")
		w.create("more", "1")
		synctest.Wait()
		w.agree()

		w.server.CutConnections()
		w.update("before", "3")
		w.remove("more")
		w.settle()
		w.agree()

		w.server.Restart(apisim.RestartOptions{Down: time.Minute})
		w.create("meanwhile", "1")
		w.remove("before")
		w.settle()
		w.settle()
		w.agree()
	})
}

func TestP02_VersionsOfAKeyOnlyRise(t *testing.T) {
	property(t, func(w *world) {
		var seen record
		w.probe.handle(seen.handle, tidings.HandlerOptions{})
		w.create("a", "1")
		w.start()
		for round := range 20 {
			w.update("a", fmt.Sprint("round-", round))
			switch round % 4 {
			case 0:
				w.server.CutConnections()
			case 1:
				w.server.Compact()
				w.server.CutConnections()
			case 2:
				w.server.Restart(apisim.RestartOptions{KeepHistory: true, Down: time.Second})
			}
			w.settle()
		}
		events := seen.take()
		if len(events) < 10 {
			w.Errorf("told %d states of 21", len(events))
		}
		last := "0"
		for _, e := range events {
			if order, ok := delta.CompareDecimal(last, version(e.New)); last != "0" && (!ok || order >= 0) {
				w.Errorf("after version %s came %v", last, e)
			}
			last = version(e.New)
		}
		w.agree()
	})
}

func TestP03_SnapshotStaysAsItWas(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		held := w.probe.snapshot()
		before := w.serverState()
		heldVersion, _ := held()
		w.update("a", "2")
		w.create("b", "1")
		synctest.Wait()
		if v, state := held(); v != heldVersion || v == "" || !maps.Equal(state, before) {
			w.Errorf("the snapshot of version %s holds %v at %s, want %v", heldVersion, state, v, before)
		}
		w.agree()
		if v, _ := w.probe.snapshot()(); v != w.versions["b"] {
			w.Errorf("the cache is at version %s, the last write made %s", v, w.versions["b"])
		}
	})
}

func TestP08_RelistIsOneStepWithDeletesFirst(t *testing.T) {
	for name, o := range map[string]tidings.FactoryOptions{"streamed": {}, "in pages": {Transport: tidings.Transport{NoStreamedLists: true, PageSize: 3}}} {
		t.Run(name, func(t *testing.T) {
			propertyWith(t, o, tidings.Selection{Namespace: "default"}, func(w *world) {
				for i := range 10 {
					w.create(fmt.Sprint("object-", i), "1")
				}
				w.start()
				before := w.serverState()
				beforeVersion, _ := w.probe.snapshot()()
				var told record
				relisting := false
				w.probe.handle(func(e event) {
					told.handle(e)
					// Whatever the handler is told first, the cache has it all.
					if relisting && !maps.Equal(w.probe.state(), w.serverState()) {
						w.Errorf("at %v the cache holds %v", e, w.probe.state())
					}
				}, tidings.HandlerOptions{})
				synctest.Wait()
				told.take()
				relisting = true
				// While the list is on its way, readers see the old state.
				lists := 0
				w.gate.set(func(_ http.ResponseWriter, r *http.Request) bool {
					if r.URL.Query().Get("resourceVersion") != "" {
						return false // a watch
					}
					lists++
					if got := w.probe.state(); !maps.Equal(got, before) {
						w.Errorf("during %s the cache holds %v", r.URL, got)
					}
					if v, _ := w.probe.snapshot()(); v != beforeVersion {
						w.Errorf("during %s the cache is at version %s", r.URL, v)
					}
					return false
				})
				w.server.Restart(apisim.RestartOptions{Down: 100 * time.Millisecond})
				w.update("object-0", "2")
				w.create("another", "1")
				w.remove("object-7")
				w.remove("object-3")
				w.server.Compact()
				w.settle()
				expect(w, told.texts(),
					"Deleted default/object-3 tombstone 1", "Deleted default/object-7 tombstone 1",
					"Added default/another 1", "Updated default/object-0 1→2")
				if lists == 0 {
					w.Error("there was no list")
				}
				w.agree()
			})
		})
	}
}

// refuse makes the server answer every request with a status.
func refuse(code int, reason string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"you shall not pass","code":%d}`, reason, code)
		return true
	}
}

func TestP13_WaitSaysWhichInformersAreNotSyncedAndWhy(t *testing.T) {
	tests := map[string]struct {
		code   int
		reason string
		state  tidings.State
		says   string
	}{
		"forbidden":   {403, "Forbidden", tidings.Forbidden, "grant list and watch on"},
		"missing":     {404, "NotFound", tidings.NoSuchResource, "CustomResourceDefinition"},
		"broken":      {500, "InternalError", tidings.Backoff, "you shall not pass"},
		"overwhelmed": {429, "TooManyRequests", tidings.Backoff, "you shall not pass"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			property(t, func(w *world) {
				w.create("a", "1")
				w.gate.set(refuse(test.code, test.reason))
				if err := w.factory.Start(w.ctx); err != nil {
					w.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
				defer cancel()
				err := w.factory.WaitForSync(ctx)
				notSynced, ok := errors.AsType[*tidings.NotSyncedError](err)
				if !ok || !errors.Is(err, context.DeadlineExceeded) {
					w.Fatalf("got %v", err)
				}
				name := w.probe.informer().Name()
				if h := notSynced.Informers[0]; h.Name != name || h.State != test.state || h.LastError == nil {
					w.Errorf("the error has %+v", h)
				}
				for _, part := range []string{name, string(test.state), test.says, "configmaps"} {
					if !strings.Contains(err.Error(), part) {
						w.Errorf("the error does not say %q: %v", part, err)
					}
				}
				w.gate.set(nil)
				w.settle()
				if h := w.probe.informer().Health(); h.State != tidings.Watching || !h.Synced || h.Objects != 1 || h.LastError == nil {
					w.Errorf("after the server has recovered health is %+v", h)
				}
			})
		})
	}
}

func TestP13_FailFastEndsTheWait(t *testing.T) {
	propertyWith(t, tidings.FactoryOptions{FailFast: true}, tidings.Selection{}, func(w *world) {
		w.gate.set(refuse(403, "Forbidden"))
		if err := w.factory.Start(w.ctx); err != nil {
			w.Fatal(err)
		}
		began := time.Now()
		if err := w.factory.WaitForSync(w.ctx); err == nil || !strings.Contains(err.Error(), "Forbidden") {
			w.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited > time.Second {
			w.Errorf("the wait took %v", waited)
		}
	})
}

func TestP13_FailFastEndsTheWaitForAMissingType(t *testing.T) {
	propertyWith(t, tidings.FactoryOptions{FailFast: true}, tidings.Selection{}, func(w *world) {
		w.server.RemoveResource(configMaps)
		if err := w.factory.Start(w.ctx); err != nil {
			w.Fatal(err)
		}
		began := time.Now()
		if err := w.factory.WaitForSync(w.ctx); err == nil || !strings.Contains(err.Error(), "NoSuchResource") {
			w.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited > time.Second {
			w.Errorf("the wait took %v", waited)
		}
	})
}

func TestP13_HandlerInItsInitialSetIsBusy(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		began, release := time.Now(), make(chan struct{})
		w.probe.handle(func(event) { <-release }, tidings.HandlerOptions{Name: "slow"})
		synctest.Wait()
		h := w.probe.informer().Health()
		if len(h.Handlers) != 1 || h.Handlers[0].State != tidings.Busy || !h.Handlers[0].RunningSince.Equal(began) {
			w.Errorf("handlers %+v", h.Handlers)
		}
		if h.Namespaces != nil {
			w.Errorf("an informer of one source has the namespaces %v", h.Namespaces)
		}
		close(release)
	})
}

func TestP13_TypeThatVanishesAndComesBack(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{})
		synctest.Wait()
		w.server.RemoveResource(configMaps)
		w.settle()
		if h := w.probe.informer().Health(); h.State != tidings.NoSuchResource || h.Objects != 1 {
			w.Errorf("without the type health is %+v", h)
		}
		w.server.RestoreResource(configMaps)
		w.create("b", "1")
		w.settle()
		expect(w, told.texts(), "Added default/a initial 1", "Deleted default/a tombstone 1", "Added default/b 1")
		w.agree()
	})
}

func TestP13_HealthFollowsTheWatch(t *testing.T) {
	property(t, func(w *world) {
		i := w.probe.informer()
		if h := i.Health(); h.State != tidings.Pending || h.Synced {
			w.Errorf("before the start health is %+v", h)
		}
		w.start()
		w.create("a", "1")
		synctest.Wait()
		if h := i.Health(); h.State != tidings.Watching || !h.LastEvent.Equal(time.Now()) || h.Version != w.versions["a"] || h.Objects != 1 {
			w.Errorf("health is %+v at %v", h, time.Now())
		}
		w.gate.set(refuse(503, "ServiceUnavailable"))
		w.server.CutConnections()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if h := i.Health(); h.State != tidings.Backoff || h.LastError == nil || !h.RetryAt.After(time.Now()) {
			w.Errorf("while the server is away health is %+v", h)
		}
		w.gate.set(nil)
		w.settle()
		if h := i.Health(); h.State != tidings.Watching || !h.RetryAt.IsZero() {
			w.Errorf("health is %+v", h)
		}
	})
}

func TestP14_WaitForReadsOnesWrites(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		for i := range 10 {
			name := fmt.Sprint("object-", i)
			w.create(name, "1")
			if err := w.probe.informer().WaitFor(w.ctx, w.versions[name]); err != nil {
				w.Fatal(err)
			}
			if got := w.probe.get("default/" + name); version(got) != w.versions[name] {
				w.Errorf("after WaitFor the cache holds %q, the write made version %s", got, w.versions[name])
			}
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if err := w.probe.informer().WaitFor(ctx, "999999999"); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "999999999") {
			w.Errorf("waiting for the future: %v", err)
		}
		if err := w.probe.informer().WaitFor(ctx, "soon"); err == nil {
			w.Error("a version that is none was waited for")
		}
	})
}

// TestP14_CacheHoldsTheWriteWhenWaitForReturns runs outside a bubble, where the wait
// and the processor really run side by side.
func TestP14_CacheHoldsTheWriteWhenWaitForReturns(t *testing.T) {
	w := newWorld(t, kinds["metadata"], tidings.FactoryOptions{}, apisim.Options{})
	defer w.end()
	w.probe = w.ask(t, w.factory, tidings.Selection{})
	if err := w.factory.Start(w.ctx); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		name := fmt.Sprint("object-", i)
		w.create(name, "1")
		if err := w.probe.informer().WaitFor(w.ctx, w.versions[name]); err != nil {
			t.Fatal(err)
		}
		if w.probe.get("default/"+name) == "" {
			t.Fatalf("WaitFor has returned before the cache holds %s", name)
		}
	}
}
