package tidings_test

import (
	"errors"
	"log/slog"
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

// TestLoggerUsesTheInformer: the logger is called without a lock, and may do with the
// informer what any goroutine may.
func TestLoggerUsesTheInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var maps *tidings.Informer[*corev1.ConfigMap]
		var calls atomic.Int64
		logger := slog.New(asking{ask: func() {
			if calls.Add(1) > 20 {
				return
			}
			registration, err := maps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{}, tidings.HandlerOptions{Limit: 1})
			if errors.Is(err, tidings.ErrStopped) {
				return // it says that it stops
			}
			if err != nil {
				t.Error(err)
				return
			}
			registration.Remove()
			if err := maps.AddIndex(tidings.NewIndex("i", func(*corev1.ConfigMap) []string { return nil })); err != nil {
				t.Error(err)
			}
		}})
		w := newWorld(t, nil, tidings.FactoryOptions{Logger: logger}, apisim.Options{})
		defer w.end()
		maps = mapsOf(w)
		w.must(maps.AddIndex(tidings.NewIndex("broken", func(*corev1.ConfigMap) []string { panic("no index") })))
		w.create("a", "1")
		w.start()
		w.create("b", "1")
		synctest.Wait()
		if calls.Load() < 3 {
			t.Errorf("the logger was called %d times, want the sync and two failures", calls.Load())
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
			_, err := maps.AddHandler(tidings.Funcs[*corev1.ConfigMap]{}, tidings.HandlerOptions{})
			done <- err
		}()
		go func() {
			done <- maps.AddIndex(tidings.NewIndex("other", func(*corev1.ConfigMap) []string { return nil }))
		}()
		other := mapsOf(w)
		go func() {
			registration, err := other.AddHandler(tidings.Funcs[*corev1.ConfigMap]{}, tidings.HandlerOptions{})
			if err == nil {
				registration.Remove()
			}
			done <- err
		}()
		for range 3 {
			w.must(<-done)
		}
		other.Release()
		if waited := time.Since(begun); waited > 2*time.Minute {
			t.Errorf("they waited for %v", waited)
		}
	})
}
