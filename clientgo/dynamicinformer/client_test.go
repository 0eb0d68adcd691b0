package dynamicinformer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	clientgo "k8s.io/client-go/dynamic/dynamicinformer"

	"github.com/tidings-go/tidings/clientgo/cache"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// TestNilClientFillsStores has no client: tests of programs fill stores by hand.
func TestNilClientFillsStores(t *testing.T) {
	for name, newFactory := range map[string]func() DynamicSharedInformerFactory{
		"client-go": func() DynamicSharedInformerFactory { return clientgo.NewDynamicSharedInformerFactory(nil, 0) },
		"ours":      func() DynamicSharedInformerFactory { return NewDynamicSharedInformerFactory(nil, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			of := newFactory().ForResource(widgets)
			one := &unstructured.Unstructured{}
			one.SetNamespace("a")
			one.SetName("one")
			if err := of.Informer().GetStore().Add(one); err != nil {
				t.Fatal(err)
			}
			if got, err := of.Lister().ByNamespace("a").Get("one"); err != nil || got != one {
				t.Errorf("%v, %v; want the object that was put into the store", got, err)
			}
		})
	}
}

// TestNilClientRuns runs without a client, where client-go ends the process: the informer
// says what is missing.
func TestNilClientRuns(t *testing.T) {
	for name, client := range map[string]dynamic.Interface{"nil": nil, "typed nil": (*dynamic.DynamicClient)(nil)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := NewFilteredDynamicSharedInformerFactory(client, 0, metav1.NamespaceAll, nil)
				informer := f.ForResource(widgets).Informer()
				var failure error
				err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
					failure = err
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				f.Start(ctx.Done())
				synctest.Wait()
				cancel()
				f.Shutdown()
				if failure == nil || !strings.Contains(failure.Error(), "dynamic.NewForConfig") {
					t.Errorf("the watch error handler is told %v, want what makes a client", failure)
				}
				if health, ok := cache.HealthOf(informer); !ok || health.LastError == nil || health.Synced {
					t.Errorf("the health is %+v (%t), want the error", health, ok)
				}
			})
		})
	}
}
