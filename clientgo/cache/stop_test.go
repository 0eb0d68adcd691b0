package cache_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// TestStop: an informer that has stopped refuses handlers and indexes, calls no handler, and can
// still be read.
func TestStop(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, noOptions)
		handler := record(t, informer)
		wantStarted := func(when string, started, stopped bool) {
			t.Helper()
			if got := informer.(interface{ HasStarted() bool }).HasStarted(); got != started {
				t.Errorf("%s: HasStarted is %v, want %v", when, got, started)
			}
			if got := informer.IsStopped(); got != stopped {
				t.Errorf("%s: IsStopped is %v, want %v", when, got, stopped)
			}
		}
		wantStarted("before Run", false, false)
		stop := runSynced(t, informer)
		wantStarted("while running", true, false)
		stop()
		wantStarted("after the end", true, true)
		source.Add(newPod("b"))
		handler.want(t, "add default/a 1 initial")
		if !informer.HasSynced() {
			t.Error("it has forgotten that it has synced")
		}
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a")
		same(t, "LastSyncResourceVersion", informer.LastSyncResourceVersion(), "1")
		if _, err := informer.AddEventHandler(handler); err == nil || !strings.Contains(err.Error(), "stopped already") {
			t.Errorf("the error of a handler after the end is %v, want one that says that it has stopped already", err)
		}
		if err := informer.AddIndexers(clientgo.Indexers{"late": allLabels}); err == nil || !strings.Contains(err.Error(), "stopped already") {
			t.Errorf("the error of an index after the end is %v, want one that says that it has stopped already", err)
		}
	})
}

// TestRunWithChannel: Run ends when its channel is closed, that of the controllers too.
// The controller that an informer returns runs nothing.
func TestRunWithChannel(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		informer.GetController().Run(nil)
		informer.GetController().RunWithContext(t.Context())
		if informer.HasSynced() || informer.IsStopped() {
			t.Error("it was run by its controller")
		}
		informer.Run(afterASecond())
		if !informer.IsStopped() || !informer.HasSynced() {
			t.Error("it has not synced and stopped")
		}
	})
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{}, Handler: &recorder{}})
		controller.Run(afterASecond())
		if !controller.HasSynced() {
			t.Error("it has not synced")
		}
	})
}

// afterASecond returns a channel that is closed after a second.
func afterASecond() <-chan struct{} {
	stop := make(chan struct{})
	time.AfterFunc(time.Second, func() { close(stop) })
	return stop
}

// TestRunEnded: an informer that is run with a context that has ended opens no watch and
// ends.
func TestRunEnded(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := &script{}
		informer := newInformer(server, &corev1.Pod{}, noOptions)
		ctx, cancel := context.WithCancel(quiet(t))
		cancel()
		informer.RunWithContext(ctx)
		server.want(t)
		if !informer.IsStopped() {
			t.Error("it has not stopped")
		}
	})
}

// TestRunRaces: handlers are added and settings are made while Run begins. A setting that comes
// too late is an error. A handler receives everything in any case.
func TestRunRaces(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		for range 50 {
			informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
			var handler recorder
			var racing sync.WaitGroup
			racing.Go(func() {
				if _, err := informer.AddEventHandler(&handler); err != nil {
					t.Error(err)
				}
			})
			racing.Go(func() {
				for informer.SetTransform(func(obj any) (any, error) { return obj, nil }) == nil &&
					informer.SetWatchErrorHandler(func(*clientgo.Reflector, error) {}) == nil {
				}
			})
			stop := run(t, informer)
			racing.Wait()
			handler.want(t, "add default/a 1 initial")
			stop()
		}
	})
}

// TestNilListerWatcher: the constructors panic without a ListerWatcher. (client-go fails in a
// goroutine of Run.)
func TestNilListerWatcher(t *testing.T) {
	for name, construct := range map[string]func(){
		"NewSharedInformer":      func() { cache.NewSharedInformer(nil, &corev1.Pod{}, 0) },
		"NewSharedIndexInformer": func() { cache.NewSharedIndexInformer(nil, &corev1.Pod{}, 0, nil) },
		"NewInformerWithOptions": func() { cache.NewInformerWithOptions(cache.InformerOptions{}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.Contains(text, "is nil: pass") {
					t.Errorf("it panics with %q, want a text that says what to pass", text)
				}
			}()
			construct()
		})
	}
}

// TestGoexitOfACallbackEndsTheInformer: Run ends, with all goroutines, when a callback ends its
// goroutine.
func TestGoexitOfACallbackEndsTheInformer(t *testing.T) {
	for _, name := range []string{"transform", "index function", "watch error handler"} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				exit := func(callback string) {
					if callback == name {
						goruntime.Goexit()
					}
				}
				source := &clientgo.ListWatch{
					ListWithContextFunc: func(
						context.Context, metav1.ListOptions,
					) (runtime.Object, error) {
						return &corev1.PodList{Items: []corev1.Pod{*newPod("a")}}, nil
					},
					WatchFuncWithContext: func(
						context.Context, metav1.ListOptions,
					) (watch.Interface, error) {
						return nil, errors.New("no watch")
					},
				}
				informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, clientgo.Indexers{
					"i": func(any) ([]string, error) { exit("index function"); return nil, nil },
				})
				must(t, informer.SetTransform(func(obj any) (any, error) {
					exit("transform")
					return obj, nil
				}))
				must(t, informer.SetWatchErrorHandler(func(*clientgo.Reflector, error) {
					exit("watch error handler")
				}))
				record(t, informer)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					informer.RunWithContext(quiet(t))
				}()
				<-ended
				if !informer.IsStopped() {
					t.Error("it is not stopped")
				}
			})
		})
	}
}

// TestRunWaitsForHandlers: when Run returns, no handler is in a call, and pending notifications
// are dropped.
func TestRunWaitsForHandlers(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		informer := newInformer(newSource(t, "a"), &corev1.Pod{}, noOptions)
		release := make(chan struct{})
		handler := &recorder{then: func() { <-release }}
		registration := addHandler(t, informer, handler)
		ctx, cancel := context.WithCancel(quiet(t))
		done := running(ctx, informer)
		waitForSync(t, informer)
		cancel()
		synctest.Wait()
		select {
		case <-done:
			t.Error("Run has returned although a handler is in a call")
		default:
		}
		close(release)
		<-done
		must(t, cache.ShutDownEventHandler(informer, registration)) // is at its end, and returns
	})
}
