package main

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/tidings-go/tidings/apisim"
)

func TestRelist(t *testing.T) {
	eachInformer(t, func(t *testing.T, newInformer newInformer) {
		synctest.Test(t, func(t *testing.T) { testRelist(t, newInformer) })
	})
}

// testRelist changes things while the server cannot be reached, and lets it forget what
// they were: only a new list can tell.
func testRelist(t *testing.T, newInformer newInformer) {
	server := newServer(t, apisim.Options{})
	for _, name := range []string{"red", "blue"} {
		create(t, server, configMap("shop", name, nil))
	}
	handler := &notes{}
	c := startCache(t, server, cache.Options{NewInformer: newInformer}, func(c cache.Cache) {
		if _, err := informer(t, c).AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
	})
	synctest.Wait()
	handler.take()

	server.SetAvailable(false)
	remove(t, server, configMapsResource(), "shop", "red")
	update(t, server, configMap("shop", "blue", map[string]string{"shade": "dark"}))
	server.Compact()
	synctest.Wait()
	expect(t, "cut off", names(t, c, &corev1.ConfigMapList{}), "shop/blue", "shop/red")
	server.SetAvailable(true)
	eventually(t, t.Context(), "the list is up to date", func(context.Context) bool {
		return len(names(t, c, &corev1.ConfigMapList{})) == 1
	})
	synctest.Wait()
	expect(t, "told of the relist", handler.take(), "delete red, unseen", "update blue")
}

func TestWatchErrorHandler(t *testing.T) {
	eachInformer(t, func(t *testing.T, newInformer newInformer) {
		synctest.Test(t, func(t *testing.T) { testWatchErrorHandler(t, newInformer) })
	})
}

// testWatchErrorHandler forbids what the cache wants, and allows it when asked again.
func testWatchErrorHandler(t *testing.T, newInformer newInformer) {
	var allowed atomic.Bool
	server := newServer(t, apisim.Options{Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/configmaps" && !allowed.Load() {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusForbidden)
				io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`) //nolint:errcheck // nobody is there to tell
				return
			}
			next.ServeHTTP(w, r)
		})
	}})
	create(t, server, configMap("shop", "red", nil))
	failed := make(chan error)
	c := startCache(t, server, cache.Options{
		NewInformer: newInformer,
		DefaultWatchErrorHandler: func(ctx context.Context, _ *toolscache.Reflector, err error) {
			select {
			case failed <- err:
			case <-ctx.Done():
			}
		},
	})
	i := informer(t, c)
	for range 3 {
		if err := <-failed; !apierrors.IsForbidden(err) {
			t.Errorf("the handler was told %v, want that it is forbidden", err)
		}
	}
	if i.HasSynced() {
		t.Error("the informer of what is forbidden is synced")
	}
	allowed.Store(true)
	expect(t, "allowed", names(t, c, &corev1.ConfigMapList{}), "shop/red")
}
