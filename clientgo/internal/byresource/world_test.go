package byresource_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"

	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// widgets and gears are custom resources: nothing knows a Go type for them.
var (
	widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	gears   = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gears"}
)

// clients reach a world. A library uses the one that it is for.
type clients struct {
	dynamic  dynamic.Interface
	metadata metadata.Interface
	// The same, with our own source, where there is a server.
	ownDynamic  *dynamicinformer.Client
	ownMetadata *metadatainformer.Client
}

// world has objects that informers follow. Its kinds are those of widgets and gears.
type world interface {
	clients(t *testing.T) clients
	create(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
	update(t *testing.T, gvr schema.GroupVersionResource, o *unstructured.Unstructured)
	delete(t *testing.T, gvr schema.GroupVersionResource, namespace, name string)
	// lists is how often a resource was listed by the clients.
	lists(gvr schema.GroupVersionResource) int
	// refuse has all lists and watches of a resource fail. It is called before anything
	// runs.
	refuse(gvr schema.GroupVersionResource)
}

// widget is an object with a label.
func widget(namespace, name, color string) *unstructured.Unstructured {
	return object("Widget", namespace, name, color)
}

func object(kind, namespace, name, color string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       kind,
		"metadata":   map[string]any{"namespace": namespace, "name": name, "labels": map[string]any{"color": color}},
		"spec":       map[string]any{"size": int64(3), "weight": 1.5, "parts": []any{"a", "b"}},
	}}
}

// silenceErrors keeps what is reported through utilruntime.HandleError from the log, and
// from the handler that waits after each error: it remembers the time of the last one,
// so that after one outside of a bubble, where it is later, it would wait for years inside.
func silenceErrors(t *testing.T) {
	t.Helper()
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{func(context.Context, error, string, ...any) {}}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
}

// metadataOf is what a metadata client has of an object.
func metadataOf(o *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: o.GetAPIVersion(), Kind: o.GetKind()},
		ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), Labels: o.GetLabels()},
	}
}
