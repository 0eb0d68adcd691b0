package tidings_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

func TestP04_HandlerIsToldEveryChangeInOrder(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{})
		w.start()
		w.create("b", "1")
		w.update("a", "2")
		w.update("a", "3")
		w.remove("b")
		w.create("b", "2")
		w.update("b", "3")
		synctest.Wait()
		expect(w, told.texts(),
			"Added default/a initial 1", "Added default/b 1", "Updated default/a 1→2", "Updated default/a 2→3",
			"Deleted default/b 1", "Added default/b 2", "Updated default/b 2→3")
	})
}

func TestP05_LateHandlerMissesNothingAndSeesNothingTwice(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var late [5]record
		for i := range late {
			w.create(fmt.Sprint("object-", i), "1")
			if i > 0 {
				w.update("object-0", fmt.Sprint(i+1))
			}
			// No Wait: the handler joins while the change is on its way.
			w.probe.handle(late[i].handle, tidings.HandlerOptions{})
		}
		w.remove("object-1")
		synctest.Wait()
		w.agree()
		for i := range late {
			folded := map[string]string{}
			for _, e := range late[i].take() {
				_, known := folded[e.Key]
				if known != (e.Type != tidings.Added) || (e.Type == tidings.Updated && folded[e.Key] != e.Old) {
					w.Errorf("handler %d: %v does not follow from %v", i, e, folded)
				}
				if e.Type == tidings.Deleted {
					delete(folded, e.Key)
				} else {
					folded[e.Key] = e.New
				}
			}
			if want := w.probe.state(); !maps.Equal(folded, want) {
				w.Errorf("handler %d adds up to %v, the cache holds %v", i, folded, want)
			}
		}
	})
}

func TestP05_InitialAddsOfALateHandlerAreMarked(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		var late record
		w.probe.handle(late.handle, tidings.HandlerOptions{})
		w.create("b", "1")
		synctest.Wait()
		expect(w, late.texts(), "Added default/a initial 1", "Added default/b 1")
	})
}

func TestP06_CacheAndIndexesHoldTheChangeFirst(t *testing.T) {
	property(t, func(w *world) {
		calls := 0
		w.probe.handle(func(e event) {
			calls++
			if e.Type == tidings.Deleted {
				if got, keys := w.probe.get(e.Key), w.probe.indexed(label(e.Old)); got != "" || len(keys) != 0 {
					w.Errorf("%v, but the cache holds %q and the index %q", e, got, keys)
				}
				return
			}
			if got := w.probe.get(e.Key); got != e.New {
				w.Errorf("%v, but the cache holds %s", e, got)
			}
			if keys := w.probe.indexed(label(e.New)); len(keys) != 1 || keys[0] != e.Key {
				w.Errorf("%v, but the index holds %q", e, keys)
			}
		}, tidings.HandlerOptions{})
		w.create("a", "1")
		w.start()
		for i := range 10 {
			w.update("a", fmt.Sprint(i+2))
			synctest.Wait()
		}
		w.remove("a")
		synctest.Wait()
		if calls != 12 {
			w.Errorf("%d calls, want 12", calls)
		}
	})
}

func TestP07_HandlerIsSyncedWhenItHasReturnedFromItsInitialSet(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.create("b", "1")
		gates := map[string]chan struct{}{"early": make(chan struct{}), "late": make(chan struct{})}
		join := func(name string) *tidings.Registration {
			return w.probe.handle(func(e event) {
				if !e.Initial {
					w.Errorf("%s: %v is not marked as initial", name, e)
				}
				<-gates[name]
			}, tidings.HandlerOptions{Name: name})
		}
		early := join("early")
		if early.HasSynced() {
			w.Error("a handler is synced before its informer runs")
		}
		w.start()
		late := join("late")
		synctest.Wait()
		for _, r := range []*tidings.Registration{early, late} {
			if !w.probe.informer().HasSynced() || r.HasSynced() {
				w.Errorf("%s is synced %v before it has returned from an add", r.Name(), r.HasSynced())
			}
			gates[r.Name()] <- struct{}{} // the first add returns
			synctest.Wait()
			if r.HasSynced() {
				w.Errorf("%s is synced before it has returned from its last add", r.Name())
			}
			gates[r.Name()] <- struct{}{}
			synctest.Wait()
			if !r.HasSynced() || !r.Health().Synced {
				w.Errorf("%s is not synced after it has returned from every add", r.Name())
			}
		}
	})
}

func TestP07_EmptyCollectionSyncsItsHandlers(t *testing.T) {
	property(t, func(w *world) {
		early := w.probe.handle(func(event) {}, tidings.HandlerOptions{})
		w.start()
		late := w.probe.handle(func(event) {}, tidings.HandlerOptions{})
		synctest.Wait()
		if !early.HasSynced() || !late.HasSynced() {
			w.Errorf("synced: early %v, late %v", early.HasSynced(), late.HasSynced())
		}
	})
}

func TestP09_RunReturnsWhenEverythingHasEnded(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		var told record
		r := w.probe.handle(told.handle, tidings.HandlerOptions{})
		w.start()
		w.stop()
		if err := w.factory.Shutdown(context.Background()); err != nil {
			w.Error(err)
		}
		select {
		case <-r.Done():
		default:
			w.Error("the factory has shut down and a handler is not done")
		}
		told.take()
		w.update("a", "2")
		synctest.Wait()
		expect(w, told.texts())
		if state := w.probe.informer().Health().State; state != tidings.Stopped {
			w.Errorf("the state is %s", state)
		}
		if got := w.probe.get("default/a"); label(got) != "1" {
			w.Errorf("after the stop the cache holds %q, want what it held", got)
		}
	})
}

func TestP09_HandlerThatDoesNotReturnIsNamed(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		release := make(chan struct{})
		w.probe.handle(func(event) { <-release }, tidings.HandlerOptions{Name: "sleepy"})
		w.start()
		w.stop()
		err := w.factory.Shutdown(context.Background())
		if !errors.Is(err, tidings.ErrHandlersStuck) || !strings.Contains(err.Error(), "sleepy") || !strings.Contains(err.Error(), "default/a") {
			w.Errorf("Shutdown: %v, want an error that names the handler and the object", err)
		}
		close(release)
		w.stuck = true
	})
}

func TestP09_HandlerRemovesItself(t *testing.T) {
	property(t, func(w *world) {
		var r *tidings.Registration
		calls := 0
		w.start()
		r = w.probe.handle(func(event) {
			calls++
			r.Remove()
			r.Remove()
		}, tidings.HandlerOptions{})
		w.create("a", "1")
		w.create("b", "1")
		<-r.Done()
		synctest.Wait()
		if calls != 1 {
			w.Errorf("%d calls, want the one in which it removed itself", calls)
		}
		if handlers := w.probe.informer().Health().Handlers; len(handlers) != 0 {
			w.Errorf("health still has %v", handlers)
		}
	})
}

func TestP10_StuckHandlerHoldsUpNobodyAndMissesNoAddOrDelete(t *testing.T) {
	property(t, func(w *world) {
		w.create("hot", "0")
		var quick, slow record
		release := make(chan struct{})
		w.probe.handle(quick.handle, tidings.HandlerOptions{Name: "quick"})
		r := w.probe.handle(func(e event) {
			<-release
			slow.handle(e)
		}, tidings.HandlerOptions{Name: "stuck", Limit: 10})
		w.start()
		for i := range 500 {
			w.update("hot", fmt.Sprint(i+1))
			if i%10 == 0 {
				synctest.Wait() // the cache sees states in between too
			}
		}
		w.create("brief", "1")
		w.remove("brief")
		w.create("brief", "2")
		synctest.Wait()
		w.agree()
		if n := len(quick.take()); n != 504 {
			w.Errorf("the quick handler was told %d times, want 504", n)
		}
		h := r.Health()
		if h.Running != "default/hot" || h.RunningSince.IsZero() || h.Folded == 0 || (h.State != tidings.Behind && h.State != tidings.Stuck) {
			w.Errorf("health is %+v", h)
		}
		close(release)
		synctest.Wait()
		state, briefs := "", ""
		for _, e := range slow.take() {
			if e.Key == "default/brief" {
				briefs += fmt.Sprintf("%v %s;", e.Type, label(e.New+e.Old))
				continue
			}
			if e.Type == tidings.Updated && e.Old != state {
				w.Errorf("%v, but the state told before is %s", e, state)
			}
			state = e.New
		}
		if state != w.probe.get("default/hot") {
			w.Errorf("the last state told is %s, the cache holds %s", state, w.probe.get("default/hot"))
		}
		if briefs != "Added 1;Deleted 1;Added 2;" {
			w.Errorf("of the object that came and went was told %s", briefs)
		}
		if h := r.Health(); h.State != tidings.Idle || h.Pending != 0 {
			w.Errorf("after it caught up health is %+v", h)
		}
	})
}

func TestP10_BlockHoldsUpTheCacheUntilTheHandlerReturns(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told record
		release := make(chan struct{})
		r := w.probe.handle(func(e event) {
			<-release
			told.handle(e)
		}, tidings.HandlerOptions{Policy: tidings.Block, Limit: 3})
		w.create("a", "0")
		for i := range 20 {
			w.update("a", fmt.Sprint(i+1))
			synctest.Wait()
		}
		if got := w.probe.get("default/a"); got == w.serverState()["default/a"] {
			w.Error("the cache went on although a handler with the policy Block is stuck")
		}
		close(release)
		synctest.Wait()
		w.agree()
		if n := len(told.take()); n != 21 || r.Health().Folded != 0 {
			w.Errorf("told %d times, want 21; health %+v", n, r.Health())
		}
	})
}

func TestP10_StopGetsPastAHandlerThatBlocksTheCache(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		release := make(chan struct{})
		w.probe.handle(func(event) { <-release }, tidings.HandlerOptions{Name: "stuck", Policy: tidings.Block, Limit: 1})
		for i := range 10 {
			w.create(fmt.Sprint("object-", i), "1")
			synctest.Wait()
		}
		w.stop()
		if err := w.factory.Shutdown(context.Background()); !errors.Is(err, tidings.ErrHandlersStuck) {
			w.Errorf("Shutdown: %v", err)
		}
		close(release)
		w.stuck = true
	})
}

func TestP11_IsolatedPanicCostsOneNotification(t *testing.T) {
	property(t, func(w *world) {
		w.start()
		var told record
		r := w.probe.handle(func(e event) {
			if e.Type == tidings.Updated {
				panic("I do not like updates")
			}
			told.handle(e)
		}, tidings.HandlerOptions{IsolatePanics: true})
		w.create("a", "1")
		w.update("a", "2")
		w.create("b", "1")
		synctest.Wait()
		expect(w, told.texts(), "Added default/a 1", "Added default/b 1")
		if h := r.Health(); h.Panics != 1 {
			w.Errorf("health is %+v", h)
		}
	})
}

func TestP11_FailingIndexFunctionCostsItsEntryAndIsSeen(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "unindexable")
		w.create("b", "unbearable")
		w.create("c", "1")
		w.start()
		w.agree()
		if keys := w.probe.indexed("1"); len(keys) != 1 || keys[0] != "default/c" {
			w.Errorf("the index holds %q", keys)
		}
		h := w.probe.informer().Health()
		if h.IndexErrors != 2 || h.LastIndexError == nil || !strings.Contains(h.LastIndexError.Error(), "default/b") {
			w.Errorf("%d index errors, the last: %v", h.IndexErrors, h.LastIndexError)
		}
	})
}

func TestP12_ResyncRepeatsTheCacheAndListsNothing(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.create("b", "1")
		var with, without record
		w.probe.handle(with.handle, tidings.HandlerOptions{Resync: 10 * time.Minute})
		w.probe.handle(without.handle, tidings.HandlerOptions{})
		w.start()
		with.take()
		without.take()
		lists := w.probe.informer().Health().Lists
		time.Sleep(time.Hour)
		synctest.Wait()
		resyncs := with.take()
		if n := len(resyncs); n < 2*5 || n > 2*7 {
			w.Errorf("%d notifications of 2 objects in 6 periods", n)
		}
		for i, e := range resyncs {
			if !e.Resync || e.Type != tidings.Updated || !e.same || e.Key != []string{"default/a", "default/b"}[i%2] {
				w.Errorf("notification %d is %v", i, e)
			}
		}
		expect(w, without.texts())
		if now := w.probe.informer().Health().Lists; now != lists {
			w.Errorf("%d lists, %d before the resyncs", now, lists)
		}
	})
}

func TestP12_ResyncOfALateHandler(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.start()
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{Resync: time.Minute})
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(w, told.texts(), "Added default/a initial 1", "Updated default/a resync 1→1")
	})
}

func TestP12_RelistReportsNothingOfUnchangedObjects(t *testing.T) {
	property(t, func(w *world) {
		w.create("a", "1")
		w.create("b", "1")
		var told record
		w.probe.handle(told.handle, tidings.HandlerOptions{})
		w.start()
		told.take()
		w.server.Restart(apisim.RestartOptions{Down: time.Second})
		w.update("b", "2")
		w.server.Compact()
		w.settle()
		expect(w, told.texts(), "Updated default/b 1→2")
		if lists := w.probe.informer().Health().Lists; lists != 2 {
			w.Errorf("%d lists, want the first and the one after the restart", lists)
		}
	})
}
