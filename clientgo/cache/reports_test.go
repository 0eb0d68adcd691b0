package cache_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// withErrorHandler makes f the only error handler of utilruntime.
func withErrorHandler(t *testing.T, f utilruntime.ErrorHandler) {
	t.Helper()
	all := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{f}
	t.Cleanup(func() { utilruntime.ErrorHandlers = all })
}

// TestSlowErrorHandler: an error handler that sleeps for years, as client-go's does with the
// first report in a bubble, delays neither lists and watches nor indexes. It receives every
// report, in order, before Run returns.
func TestSlowErrorHandler(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var reported []string
		withErrorHandler(t, func(_ context.Context, err error, _ string, _ ...any) {
			time.Sleep(10 * 365 * 24 * time.Hour)
			reported = append(reported, err.Error())
		})
		var lists int
		server := &script{list: func(metav1.ListOptions) (runtime.Object, error) {
			if lists++; lists == 1 {
				return nil, errForbidden
			}
			return podList("5", versioned("a", "3")), nil
		}}
		server.watch = opens(time.Hour, added(versioned("b", "6")))
		informer := cache.NewSharedIndexInformerWithOptions(server, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{
			Indexers: clientgo.Indexers{"broken": func(any) ([]string, error) { return nil, errors.New("no index") }},
		})
		stop := run(t, informer)
		settle(time.Minute)
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b")
		stop()
		if len(reported) != 2 || reported[1] != "no index" {
			t.Errorf("reported were %q, want a list that was refused and an index", reported)
		}
	})
}

// TestErrorHandlerThatEndsItsGoroutine: the reports after it are handled.
func TestErrorHandlerThatEndsItsGoroutine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var reported []string
		withErrorHandler(t, func(_ context.Context, err error, _ string, _ ...any) {
			reported = append(reported, err.Error())
			goruntime.Goexit()
		})
		w := watch.NewRaceFreeFake()
		server := &script{watch: func(metav1.ListOptions) (watch.Interface, error) { return w, nil }}
		stop := run(t, cache.NewSharedIndexInformerWithOptions(server, &corev1.Pod{}, noOptions))
		synctest.Wait()
		nothing := watch.Event{Type: watch.Added}
		send(w, nothing, nothing, nothing)
		synctest.Wait()
		stop()
		if n := len(slices.Compact(reported)); n != 1 || len(reported) != 3 {
			t.Errorf("reported were %q, want three objects that are missing", reported)
		}
	})
}
