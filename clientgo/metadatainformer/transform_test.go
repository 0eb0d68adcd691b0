package metadatainformer

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/metadata"
	clientgo "k8s.io/client-go/metadata/metadatainformer"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
)

// withTransform makes a factory with the option WithTransform, of either package.
var withTransform = map[string]func(client metadata.Interface, resync time.Duration, transforms ...cache.TransformFunc) SharedInformerFactory{
	"client-go": func(client metadata.Interface, resync time.Duration, transforms ...cache.TransformFunc) SharedInformerFactory {
		var options []clientgo.SharedInformerOption
		for _, transform := range transforms {
			options = append(options, clientgo.WithTransform(transform))
		}
		return clientgo.NewSharedInformerFactoryWithOptions(client, resync, options...)
	},
	"ours": func(client metadata.Interface, resync time.Duration, transforms ...cache.TransformFunc) SharedInformerFactory {
		var options []SharedInformerOption
		for _, transform := range transforms {
			options = append(options, WithTransform(transform))
		}
		return NewSharedInformerFactoryWithOptions(client, resync, options...)
	},
}

// slim is a transform that drops the labels and says that it was here.
func slim(obj any) (any, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return obj, errors.New("not metadata")
	}
	o.Labels = nil
	o.Annotations = map[string]string{"seen": "yes"}
	return o, nil
}

func other(any) (any, error) { return nil, errors.New("the wrong transform") }

func TestWithTransform(t *testing.T) {
	for name, transforms := range map[string][]cache.TransformFunc{
		"one":                 {slim},
		"the last one counts": {other, slim},
	} {
		for library, newFactory := range withTransform {
			t.Run(name+"/"+library, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkTransformed(t, newFactory, transforms) })
			})
		}
	}
}

func checkTransformed(t *testing.T, newFactory func(metadata.Interface, time.Duration, ...cache.TransformFunc) SharedInformerFactory, transforms []cache.TransformFunc) {
	t.Helper()
	server, client := newServer(t)
	create(t, server, "listed")
	f := newFactory(client, 0, transforms...)
	informer := f.ForResource(widgets).Informer()
	var told []*metav1.PartialObjectMetadata
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { told = append(told, obj.(*metav1.PartialObjectMetadata)) },
	}); err != nil {
		t.Fatal(err)
	}
	start(t, f)
	create(t, server, "watched")
	synctest.Wait()
	if len(told) != 2 {
		t.Errorf("the handler was told of %d objects, want 2", len(told))
	}
	for _, o := range told {
		cached, _, err := informer.GetStore().GetByKey("default/" + o.Name)
		if err != nil || cached != o || o.Labels != nil || o.Annotations["seen"] != "yes" {
			t.Errorf("the store has %v (%v), the handler %v; want one object, as the transform leaves it", cached, err, o)
		}
	}
}

// TestNoTransform has an option without a function, and none at all.
func TestNoTransform(t *testing.T) {
	for library, newFactory := range withTransform {
		for name, transforms := range map[string][]cache.TransformFunc{"nil": {nil}, "none": nil} {
			t.Run(library+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server, client := newServer(t)
					create(t, server, "one")
					f := newFactory(client, 0, transforms...)
					informer := f.ForResource(widgets).Informer()
					start(t, f)
					cached, ok, err := informer.GetStore().GetByKey("default/one")
					if err != nil || !ok || cached.(*metav1.PartialObjectMetadata).Labels["color"] != "red" {
						t.Errorf("the store has %v (%v), want the object with its label", cached, err)
					}
				})
			})
		}
	}
}

// newServer returns a server with widgets, and a client of it.
func newServer(t *testing.T) (*apisim.Server, metadata.Interface) {
	t.Helper()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := server.Register(apisim.Resource{Group: widgets.Group, Version: widgets.Version, Name: widgets.Resource, Kind: "Widget", Namespaced: true}); err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

func create(t *testing.T, server *apisim.Server, name string) {
	t.Helper()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "default", "name": name, "labels": map[string]any{"color": "red"}},
	}}
	if _, err := server.Create(t.Context(), widget); err != nil {
		t.Fatal(err)
	}
}

// start runs the factory's informers until the end of the test, and returns when all
// there is to do has been done.
func start(t *testing.T, f SharedInformerFactory) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	f.Start(ctx.Done())
	synctest.Wait()
}
