package contract_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

func TestEventsLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		informer, err := tidings.For[*corev1.ConfigMap](w.factory, tidings.Selection{})
		if err != nil {
			t.Fatal(err)
		}
		w.create("a", "1")
		w.start()
		w.create("b", "1")
		synctest.Wait()
		var told []string
		var first *corev1.ConfigMap
		for e, err := range informer.Events(w.ctx) {
			w.must(err)
			told = append(told, fmt.Sprint(e.Type, " ", e.Key(), " ", e.Object().Labels["n"]))
			switch len(told) {
			case 1:
				first = e.New
			case 2:
				w.remove("a")
			case 3:
				if e.New != nil || e.Old.ResourceVersion == first.ResourceVersion {
					t.Errorf("the last state is %v, the new one %v", e.Old, e.New)
				}
				w.update("b", "2")
				w.create("unseen", "1")
			}
			if len(told) == 4 {
				synctest.Wait() // until the handler waits to yield another event
				break
			}
		}
		expect(t, told, "Added default/a 1", "Added default/b 1", "Deleted default/a 1",
			"Updated default/b 2")
		synctest.Wait()
		if handlers := informer.Health().Handlers; len(handlers) != 0 {
			t.Errorf("leaving the loop left %v", handlers)
		}
		w.stop()
		synctest.Wait()
		for e, err := range informer.Events(context.Background()) {
			expectError(t, "of a stopped informer", err, tidings.ErrStopped, informer.Name())
			if e.Object() != nil {
				t.Errorf("a stopped informer yields %v", e)
			}
		}
		for e, err := range informer.Events(w.ctx) {
			t.Errorf("after the end of the context the loop yields %v, %v", e, err)
		}
	})
}

// TestLoopOverEventsEndsWithItsContext while its informer runs, and delays no stop after that.
func TestLoopOverEventsEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.create("a", "1")
		w.create("b", "1")
		maps := mapsOf(w)
		w.start()
		loop := func(ctx context.Context, body func(tidings.Event[*corev1.ConfigMap])) (end chan struct{}) {
			end = make(chan struct{})
			go func() {
				defer close(end)
				for e, err := range maps.Events(ctx) {
					w.must(err)
					body(e)
				}
			}()
			synctest.Wait()
			return end
		}
		ctx, cancel := context.WithCancel(t.Context())
		idle := loop(ctx, func(tidings.Event[*corev1.ConfigMap]) {})
		busy := loop(ctx, func(tidings.Event[*corev1.ConfigMap]) { time.Sleep(time.Hour) })
		cancel()
		synctest.Wait()
		select {
		case <-idle:
		default:
			t.Error("the context has ended, and the loop goes on")
		}
		began := time.Now()
		w.must(w.factory.Shutdown(t.Context()))
		if took := time.Since(began); took > 0 {
			t.Errorf("the body of a loop that is to end has delayed Shutdown by %v", took)
		}
		<-busy
	})
}

// A loop over events ends with the release of its handle, and says so.
func TestLoopOverEventsEndsWithTheRelease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, nil, tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		w.create("a", "1")
		maps := mapsOf(w)
		w.must(w.factory.Start(w.ctx))
		var end error
		for e, err := range maps.Events(t.Context()) {
			if end = err; err == nil && e.Key() == "default/a" {
				maps.Release()
			}
		}
		expectError(t, "the end of the loop", end, tidings.ErrReleased, maps.Name())
		for _, err := range maps.Events(t.Context()) {
			expectError(t, "of a released handle", err, tidings.ErrReleased, maps.Name())
		}
	})
}
