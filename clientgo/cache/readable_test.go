package cache_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/flight"
	"github.com/tidings-go/tidings/source"
)

// readable is a ListerWatcher that must not be called: it names a source.
type readable struct {
	clientgo.ListerWatcher
	client  *source.Client
	options source.RESTOptions
}

func (r readable) Reading() (*source.Client, source.Resource, source.RESTOptions) {
	return r.client, source.Resource{Version: "v1", Name: "configmaps", Kind: "ConfigMap"}, r.options
}

// TestReadable: the source that a ListerWatcher names is read in its place, in the form of the
// example, with and without a transform, and with and without choices of the program. Metadata have
// the kind of the resource.
func TestReadable(t *testing.T) {
	untyped := &unstructured.Unstructured{}
	untyped.SetAPIVersion("v1")
	untyped.SetKind("ConfigMap")
	for name, example := range map[string]runtime.Object{
		"typed": &corev1.ConfigMap{}, "untyped": untyped, "metadata": &metav1.PartialObjectMetadata{},
	} {
		for _, transformed := range []bool{false, true} {
			for _, chosen := range []bool{false, true} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { testReadable(t, example, transformed, chosen) })
				})
			}
		}
	}
}

func testReadable(t *testing.T, example runtime.Object, transformed, chosen bool) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	add := func(name string) {
		t.Helper()
		if _, err := server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"in": "it"}}}); err != nil {
			t.Fatal(err)
		}
	}
	client, err := source.NewClient(server.Config(), nil)
	if err != nil {
		t.Fatal(err)
	}
	add("a")
	var lw cache.ListerWatcher = readable{client: client, options: source.RESTOptions{Namespace: "default", Labels: "in=it"}}
	recorder, err := flight.New(flight.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	table := new(source.Table)
	if chosen {
		lw = cache.WithSharing(cache.WithRecorder(lw, recorder), cache.SharingOptions{Among: table})
	}
	informer := cache.NewSharedIndexInformer(lw, example, 0, cache.Indexers{})
	transform := func(obj any) (any, error) {
		obj.(metav1.Object).SetLabels(map[string]string{"transformed": "yes"})
		return obj, nil
	}
	if transformed {
		if err := informer.SetTransform(transform); err != nil {
			t.Fatal(err)
		}
	}
	stop := runSynced(t, informer)
	// Of two objects the table keeps nothing once in 256 times: it tells objects apart by a byte.
	for _, name := range []string{"b", "c", "d", "e"} {
		add(name)
	}
	synctest.Wait()
	keys := informer.GetStore().ListKeys()
	slices.Sort(keys)
	if !slices.Equal(keys, []string{"default/a", "default/b", "default/c", "default/d", "default/e"}) {
		t.Errorf("the cache holds %q", keys)
	}
	if shares := table.Stats().Kept > 0; shares != chosen {
		t.Errorf("the chosen table is used: %t, want %t", shares, chosen)
	}
	if recorded := recorder.Bytes() > 0; recorded != chosen {
		t.Errorf("the chosen recorder is used: %t, want %t", recorded, chosen)
	}
	for _, obj := range informer.GetStore().List() {
		kind := obj.(runtime.Object).GetObjectKind().GroupVersionKind()
		if _, typed := example.(*corev1.ConfigMap); !typed && kind.Kind != "ConfigMap" {
			t.Errorf("an object has the kind %v", kind)
		}
		if _, has := obj.(metav1.Object).GetLabels()["transformed"]; has != transformed {
			t.Errorf("transformed: %v, want %v", has, transformed)
		}
	}
	waiting := informer.GetStore().(interface {
		WaitFor(ctx context.Context, version string) error
	})
	if err := waiting.WaitFor(t.Context(), "1"); err != nil {
		t.Errorf("wait for a version: %v", err)
	}
	stop()
	if err := waiting.WaitFor(t.Context(), "1000000"); err == nil {
		t.Error("wait for a version after the stop: want an error")
	}
}
