package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidings-go/tidings/apisim"
)

func TestOnlyMetadata(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) { testOnlyMetadata(t, caching) })
	})
}

// testOnlyMetadata runs a controller that watches the metadata of ConfigMaps, and checks
// that nothing more than that is asked of the server.
func testOnlyMetadata(t *testing.T, caching string) {
	var whole atomic.Int32
	server := newServer(t, apisim.Options{Middleware: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/configmaps") && !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
				whole.Add(1)
			}
			next.ServeHTTP(w, r)
		})
	}})
	create(t, server, configMap("shop", "red", map[string]string{"shade": "light"}))
	create(t, server, configMap("attic", "old", nil))
	o := chosen(t, caching, "shop", "blog")
	o.Controller.SkipNameValidation = new(true)
	m, err := manager.New(server.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	seen := make(chan string)
	err = builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}, builder.OnlyMetadata).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			line, err := describe(ctx, m.GetClient(), req.NamespacedName)
			if err != nil {
				return reconcile.Result{}, err
			}
			select {
			case seen <- line:
			case <-ctx.Done():
			}
			return reconcile.Result{}, nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	stop := start(t, m)
	next := func(want string) {
		t.Helper()
		if got := <-seen; got != want {
			t.Errorf("reconciled %q, want %q", got, want)
		}
	}

	next("/v1, Kind=ConfigMap shop/red light")
	update(t, server, configMap("shop", "red", map[string]string{"shade": "dark"}))
	next("/v1, Kind=ConfigMap shop/red dark")
	create(t, server, configMap("attic", "older", nil))
	create(t, server, configMap("blog", "blue", map[string]string{"shade": "light"}))
	next("/v1, Kind=ConfigMap blog/blue light")
	remove(t, server, configMapsResource(), "shop", "red")
	next("shop/red is gone")
	endWatches(t, server)
	stop()
	if whole.Load() > 0 {
		t.Errorf("whole objects were asked for %d times", whole.Load())
	}
}

// describe reads the metadata of a ConfigMap.
func describe(ctx context.Context, reader client.Reader, key client.ObjectKey) (string, error) {
	obj := &metav1.PartialObjectMetadata{}
	obj.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
	err := reader.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		return fmt.Sprintf("%s is gone", key), nil
	}
	return fmt.Sprintf("%v %s %s", obj.GroupVersionKind(), key, obj.Labels["shade"]), err
}
