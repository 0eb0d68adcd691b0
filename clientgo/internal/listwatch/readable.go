package listwatch

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/source"
)

// Readable is a cache.ListerWatcher of one resource that names the source to read in its place.
// Package ctrlruntime, a module of its own, has one.
type Readable interface {
	cache.ListerWatcher
	// Reading returns a client, the resource and the options of the source.
	Reading() (*source.Client, source.Resource, source.RESTOptions)
}

// chosen is a Readable with the choices of a program.
type chosen struct {
	Readable
	choose func(*source.RESTOptions)
}

func (c chosen) Reading() (*source.Client, source.Resource, source.RESTOptions) {
	client, resource, o := c.Readable.Reading()
	c.choose(&o)
	return client, resource, o
}

// Open returns the source that a Readable names. Its objects have the form of the example: maps,
// metadata, or a Go type. Metadata have the kind of the resource. The objects share at most the
// parts of sharing. Secrets share nothing.
func Open(of Readable, example runtime.Object, sharing source.Sharing) source.Source[any] {
	client, resource, o := of.Reading()
	o.Sharing = sharing
	switch example.(type) {
	case *unstructured.Unstructured:
		return Untyped[*unstructured.Unstructured](source.NewDynamic(client, resource, o), nil)
	case *metav1.PartialObjectMetadata:
		kind := resource.GroupVersion().WithKind(resource.Kind)
		return Untyped[*metav1.PartialObjectMetadata](source.NewMetadata(client, resource, o),
			func(obj *metav1.PartialObjectMetadata) {
				if obj != nil { // a bookmark has no object
					obj.SetGroupVersionKind(kind)
				}
			})
	}
	structType := reflect.TypeOf(example).Elem()
	newObject := func() source.Object { return reflect.New(structType).Interface().(source.Object) }
	return Untyped[source.Object](source.NewTyped(client, resource, newObject, o), nil)
}
