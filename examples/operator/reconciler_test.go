package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidings-go/tidings/apisim"
)

// uncached returns a client that reads from the server.
func uncached(t *testing.T, server *apisim.Server) client.Client {
	t.Helper()
	o := chosen(t, stockCache)
	api, err := client.New(server.Config(), client.Options{Scheme: o.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	return api
}

// TestStrangersThings has a Deployment in the place of a website's that nobody made for it.
func TestStrangersThings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, apisim.Options{})
		create(t, server, website(t, "shop", "front", "hello"))
		create(t, server, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"}})
		api := uncached(t, server)
		_, err := (&reconciler{Client: api}).Reconcile(t.Context(), reconcile.Request{NamespacedName: key("shop/front")})
		if err == nil || !strings.Contains(err.Error(), "shop/front is not of a website") {
			t.Errorf("reconcile: %v, want that the Deployment is not of a website", err)
		}
		var servers appsv1.Deployment
		if err := api.Get(t.Context(), key("shop/front"), &servers); err != nil {
			t.Fatal(err)
		}
		if len(servers.OwnerReferences) > 0 || servers.Spec.Replicas != nil {
			t.Errorf("the operator changed a Deployment that is not its own: %+v", servers)
		}
	})
}

// behind is a client whose cache has not heard of any ConfigMap yet.
type behind struct {
	client.Client
}

func (b behind) Get(ctx context.Context, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
	if _, ok := obj.(*corev1.ConfigMap); ok {
		return apierrors.NewNotFound(configMapsResource().GroupResource(), key.Name)
	}
	return b.Client.Get(ctx, key, obj, o...)
}

func TestCacheBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer(t, apisim.Options{})
		site := website(t, "shop", "front", "hello")
		create(t, server, site)
		r := &reconciler{Client: behind{uncached(t, server)}}
		for _, want := range []reconcile.Result{{}, {RequeueAfter: retryAfter}} {
			got, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key("shop/front")})
			// The server has no index of owners, so the list after the writes fails.
			if want.IsZero() != (err != nil) || got != want {
				t.Errorf("reconcile: %v, %v, want %v", got, err, want)
			}
		}
	})
}
