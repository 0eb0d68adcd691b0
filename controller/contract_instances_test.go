package controller_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

// watchesOf returns the number of watches of ConfigMaps that have begun.
func watchesOf(w *world) int {
	return len(w.server.Requests().Of(apisim.Match{Verb: "watch", Resource: "configmaps"}))
}

// TestC03_ACacheBehindItsWritesIsWatchedAnew has an informer that follows an API server whose watch
// cache stands still. When a key has waited for ten seconds, the watch is restarted, and then every
// half minute: another server may answer.
func TestC03_ACacheBehindItsWritesIsWatchedAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		i := w.server.AddInstance()
		var err error
		w.factory, err = tidings.NewFactory(i.Config(),
			tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)})
		fatal(t, err)
		create(w, withState(configMap("a", "x"), "1"))
		var log calls
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			log.add("%s", r.Object.Data["state"])
			if r.Object.Data["state"] == "2" {
				i.SetLag(apisim.Frozen) // the watch has sent this state, and does not send the next
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "3"), updateNow)
				return controller.Result{RequeueAfter: time.Millisecond}, err
			}
			return controller.Result{}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Minute)
		update(w, withState(configMap("a", "x"), "2"))
		log.expect(t, "1", "2")
		before := watchesOf(w)
		time.Sleep(9 * time.Second)
		synctest.Wait()
		if n := watchesOf(w) - before; n != 0 {
			t.Errorf("%d watches within ten seconds", n)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if n := watchesOf(w) - before; n != 1 {
			t.Errorf("%d watches after ten seconds, want 1", n)
		}
		log.expect(t)
		time.Sleep(2 * time.Minute) // a list, which is consistent, takes the place of the third watch
		synctest.Wait()
		if n := watchesOf(w) - before; n < 2 || n > 4 {
			t.Errorf("%d watches after two minutes", n)
		}
		log.expect(t, "3")
		fatal(t, stop())
	})
}

// TestP16_AGuardThatReadsAnOlderStateStartsTheCheck restores a backup, whose server passes the old
// version and writes the object that changed last again. Then the guard reads another object, of
// which the cache holds a lost state.
func TestP16_AGuardThatReadsAnOlderStateStartsTheCheck(t *testing.T) {
	inWorld(t, func(w *world) {
		create(w, withState(configMap("a", "x"), "1"))
		create(w, configMap("a", "last"))
		var log calls
		var writes atomic.Bool
		c := newController(w, options{}, func(ctx context.Context, r request) (controller.Result, error) {
			if r.Key != "a/x" {
				return controller.Result{}, nil
			}
			log.add("%s", r.Object.Data["state"])
			if writes.Swap(false) {
				_, err := w.client.CoreV1().ConfigMaps("a").Update(ctx, withState(r.Object, "2"), updateNow)
				return controller.Result{}, err
			}
			return controller.Result{RequeueAfter: time.Hour}, nil
		})
		stop := start(w, c)
		time.Sleep(time.Minute)
		backup := w.server.Snapshot()
		update(w, withState(configMap("a", "x"), "lost"))
		update(w, withState(configMap("a", "last"), "lost"))
		log.expect(t, "1", "lost")
		w.server.SetAvailable(false)
		w.server.Rewind(backup)
		for _, state := range []string{"A", "B", "C", "D"} {
			update(w, withState(configMap("a", "last"), state))
		}
		time.Sleep(15 * time.Second)
		w.server.SetAvailable(true)
		time.Sleep(time.Hour)
		log.expect(t, "lost") // no client can notice it
		writes.Store(true)
		w.server.Inject(apisim.Match{Verb: "update", Times: 1}, apisim.Refuse(500, 0))
		time.Sleep(2 * time.Hour) // the call comes within the first
		if got := log.take(); len(got) < 2 || got[0] != "lost" || got[len(got)-1] != "1" {
			t.Errorf("calls: %q, want one of the state that the server has", got)
		}
		fatal(t, stop())
	})
}
