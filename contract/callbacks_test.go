package contract_test

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// mapsOf asks for the informer of all.
func mapsOf(w *world) *tidings.Informer[*corev1.ConfigMap] {
	w.Helper()
	maps, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
	if err != nil {
		w.Fatal(err)
	}
	return maps
}

// asking is a slog.Handler that calls a function for each record and each With.
type asking struct {
	slog.Handler
	ask   func()
	texts *sync.Map // of the records
}

func (a asking) Enabled(context.Context, slog.Level) bool { return true }

func (a asking) WithAttrs([]slog.Attr) slog.Handler { a.ask(); return a }

func (a asking) WithGroup(string) slog.Handler { return a }

func (a asking) Handle(_ context.Context, r slog.Record) error {
	a.texts.Store(r.Message, true)
	a.ask()
	return nil
}

// changeInformer adds and removes a handler, and adds an index.
func changeInformer(t *testing.T, maps *tidings.Informer[*corev1.ConfigMap]) {
	r, err := maps.AddHandler(ignore[*corev1.ConfigMap](), tidings.HandlerOptions{})
	if err != nil {
		return // the informer has stopped
	}
	r.Remove()
	none := func(*corev1.ConfigMap) []string { return nil }
	if err := maps.AddIndex(tidings.NewIndex("i", none)); err != nil {
		t.Error(err)
	}
}

// TestCallbacksUseTheInformer: the logger, OnMutation, a transform and an index function are
// called without a lock: they may ask for health and read the cache. The logger may do
// everything.
func TestCallbacksUseTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var maps *tidings.Informer[*corev1.ConfigMap]
		var factory *tidings.Factory
		var logged, mutated, transformed, indexed atomic.Int64
		count := func(n *atomic.Int64) {
			n.Add(1)
			if maps != nil {
				factory.Health()
				maps.Health()
				maps.Lister().Snapshot().Len()
			}
		}
		var texts sync.Map
		logger := slog.New(asking{texts: &texts, ask: func() {
			count(&logged)
			if maps != nil && logged.Load() <= 20 {
				changeInformer(t, maps)
			}
		}})
		server := apisim.Start(t)
		var err error
		factory, err = tidings.NewFactory(server.Config(), tidings.FactoryOptions{
			Logger: logger, DetectMutations: true,
			OnMutation: func(tidings.Mutation) { count(&mutated) },
		})
		w := &world{T: t, server: server, factory: factory, uids: map[string]string{},
			versions: map[string]string{}}
		w.must(err)
		same := func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
			count(&transformed)
			return c, nil
		}
		maps, err = tidings.For[*corev1.ConfigMap](factory,
			tidings.Selection{Transform: tidings.NewTransform(same)})
		w.must(err)
		w.must(maps.AddIndex(tidings.NewIndex("broken", func(*corev1.ConfigMap) []string {
			count(&indexed)
			panic("no index")
		})))
		_, err = maps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
			OnAdd: func(c *corev1.ConfigMap, _ bool) { c.Labels = map[string]string{"by": "handler"} },
		}, tidings.HandlerOptions{})
		w.must(err)
		w.create("a", "1")
		ctx, stop := context.WithCancel(t.Context())
		w.must(factory.Start(ctx))
		time.Sleep(time.Minute)
		w.create("b", "1")
		synctest.Wait()
		stop()
		w.must(factory.Shutdown(t.Context()))
		for _, text := range []string{"state changed", "synced",
			"an index function failed; the object has no entry in that index"} {
			if _, ok := texts.Load(text); !ok {
				t.Errorf("not logged: %s", text)
			}
		}
		for name, n := range map[string]int64{
			"logger": logged.Load(), "OnMutation": mutated.Load(),
			"transform": transformed.Load(), "index function": indexed.Load(),
		} {
			if n == 0 || name == "logger" && n < 3 {
				t.Errorf("the %s was called %d times", name, n)
			}
		}
	})
}

// TestIndexFunctionTakesItsTime: in a bubble, time goes on while handlers and indexes wait for
// an index function that sleeps.
func TestIndexFunctionTakesItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		maps := mapsOf(w)
		w.start()
		w.must(maps.AddIndex(tidings.NewIndex("slow", func(*corev1.ConfigMap) []string {
			time.Sleep(time.Minute)
			return nil
		})))
		w.create("a", "1")
		synctest.Wait()
		begun := time.Now()
		done := make(chan error, 3)
		go func() {
			_, err := maps.AddHandler(ignore[*corev1.ConfigMap](), tidings.HandlerOptions{})
			done <- err
		}()
		go func() {
			done <- maps.AddIndex(tidings.NewIndex("other", func(*corev1.ConfigMap) []string { return nil }))
		}()
		released := mapsOf(w)
		refused := make(chan error)
		go func() {
			_, err := released.AddHandler(ignore[*corev1.ConfigMap](), tidings.HandlerOptions{})
			refused <- err
		}()
		synctest.Wait()
		released.Release()
		other := mapsOf(w)
		go func() {
			registration, err := other.AddHandler(ignore[*corev1.ConfigMap](),
				tidings.HandlerOptions{})
			if err == nil {
				registration.Remove()
			}
			done <- err
		}()
		for range 3 {
			w.must(<-done)
		}
		other.Release()
		expectError(t, "AddHandler of a handle that was released", <-refused, tidings.ErrReleased)
		if waited := time.Since(begun); waited > 2*time.Minute {
			t.Errorf("they waited for %v", waited)
		}
	})
}
