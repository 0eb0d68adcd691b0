package factory

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
	"github.com/tidings-go/tidings/source"
)

// ByResource are the options of dynamic and of metadata informers.
type ByResource = Options[schema.GroupVersionResource]

// Apply returns the result of options, which apply in order.
func Apply[O ~func(*ByResource)](options []O) (o ByResource) {
	for _, set := range options {
		set(&o)
	}
	if o.Table == nil {
		o.Table = new(source.Table)
	}
	return o
}

// Kind says how one package holds and reads objects. NewResourceInformer and
// NewResourceFactory make its informers.
type Kind struct {
	// Example is an object as it is cached.
	Example runtime.Object
	// Client is asked whether lists can be streamed; List opens a resource of it.
	Client any
	List   func(gvr schema.GroupVersionResource, namespace string) (listwatch.Client, error)
	// Own reads in place of Client, unless it is nil; Open opens a source of it.
	Own  *source.Client
	Open func(source.Resource, source.RESTOptions) source.Source[any]
}

// NewResourceFactory returns a factory of informers by resource.
func NewResourceFactory(k Kind, resync time.Duration, o ByResource) *Resources {
	return NewResources(func(gvr schema.GroupVersionResource) cache.SharedIndexInformer {
		return k.newInformer(gvr, resync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, o)
	})
}

// NewResourceInformer returns an informer that no factory shares.
func NewResourceInformer(k Kind, gvr schema.GroupVersionResource, resync time.Duration, indexers cache.Indexers, o ByResource) informers.GenericInformer {
	return Generic(k.newInformer(gvr, resync, indexers, o), gvr.GroupResource())
}

func (k Kind) newInformer(gvr schema.GroupVersionResource, resync time.Duration, indexers cache.Indexers, o ByResource) cache.SharedIndexInformer {
	of := source.Resource{Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource}
	if o.Namespace != "" {
		// As with client-go's clients, the server answers whether that is so.
		of.Scope = source.ScopeNamespaced
	}
	spec := Spec{
		Resource: of, Namespace: o.Namespace, Tweak: o.Tweak,
		Sharing: o.Sharing, Table: o.Table, Drop: o.Drop.Of(gvr),
		Informer: sharedinformer.Options{
			Example: k.Example, Description: gvr.String(), ResyncPeriod: resync, Indexers: indexers,
		},
	}
	if k.Own != nil && isPath(o.Namespace, gvr) {
		spec.Open = func(o source.RESTOptions) source.Source[any] { return k.Open(of, o) }
	} else {
		open := func() (listwatch.Client, error) { return k.List(gvr, o.Namespace) }
		spec.ListWatch = listwatch.FromClient(k.Client, open, o.Tweak)
	}
	informer := New(spec)
	if o.Transform != nil {
		if err := informer.SetTransform(o.Transform); err != nil {
			panic(fmt.Sprintf("factory: a new informer of %s refused its transform: %v", gvr, err)) // it has not started
		}
	}
	return informer
}

// isPath reports whether the namespace and the resource can stand in a path. If they cannot,
// client-go's client reports what is wrong with them.
func isPath(namespace string, gvr schema.GroupVersionResource) bool {
	for _, segment := range []string{namespace, gvr.Group, gvr.Version, gvr.Resource} {
		if len(rest.IsValidPathSegmentName(segment)) > 0 {
			return false
		}
	}
	return gvr.Resource != "" && gvr.Version != ""
}

// CheckResource panics if a resource has no name. The message begins with the name of the
// option.
func CheckResource(option string, gvr schema.GroupVersionResource) {
	if gvr.Resource == "" {
		panic(option + ": the resource has no name: give it group, version and plural name, as in example.com, v1, widgets")
	}
}

// IsNil reports whether a client is nil or a nil pointer.
func IsNil(client any) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
