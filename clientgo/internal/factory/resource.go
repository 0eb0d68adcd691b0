package factory

import (
	"cmp"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
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
	o.Table = cmp.Or(o.Table, new(source.Table))
	return o
}

// Kind describes how one package holds and reads objects.
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

// Resources is a factory of informers by resource, as the interfaces of the factories of
// dynamic and of metadata informers require.
type Resources struct {
	Factory[schema.GroupVersionResource]
	Kind    Kind
	Resync  time.Duration
	Options ByResource
}

// ForResource returns the shared informer of a resource.
func (f *Resources) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	return f.Kind.generic(f.Informer(gvr, func() cache.SharedIndexInformer {
		return f.Kind.newInformer(gvr, f.Resync, ByNamespace(), f.Options)
	}), gvr)
}

// ByNamespace returns the one index of new informers of factories.
func ByNamespace() cache.Indexers {
	return cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
}

// NewInformer returns an informer that no factory shares.
func (k Kind) NewInformer(gvr schema.GroupVersionResource, resync time.Duration,
	indexers cache.Indexers, o ByResource) informers.GenericInformer {
	return k.generic(k.newInformer(gvr, resync, indexers, o), gvr)
}

// generic returns an informer with a lister like those of client-go's packages of the kind.
func (k Kind) generic(informer cache.SharedIndexInformer,
	gvr schema.GroupVersionResource) informers.GenericInformer {
	none := reflect.Zero(reflect.TypeOf(k.Example)).Interface().(runtime.Object)
	return generic{informer, gvr.GroupResource(), none}
}

func (k Kind) newInformer(gvr schema.GroupVersionResource, resync time.Duration,
	indexers cache.Indexers, o ByResource) cache.SharedIndexInformer {
	of := source.Resource{Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource}
	if o.Namespace != "" {
		// As with client-go's clients, the server answers with an error if that is wrong.
		of.Scope = source.ScopeNamespaced
	}
	spec := Spec{
		Reading: o.Reading, Resource: of, Drop: o.Drop.Of(gvr),
		Informer: sharedinformer.Options{
			Example: k.Example, Description: gvr.String(), ResyncPeriod: resync, Indexers: indexers,
		},
	}
	if k.Own != nil && isPath(o.Namespace, gvr) {
		spec.Open = func(o source.RESTOptions) source.Source[any] { return k.Open(of, o) }
	} else {
		spec.Informer.Fallback = fmt.Sprintf("the client is a %T, not one of NewClient", k.Client)
		if k.Own != nil {
			spec.Informer.Fallback = "the namespace or the resource cannot be part of a path"
		}
		open := func() (listwatch.Client, error) { return k.List(gvr, o.Namespace) }
		spec.ListWatch = listwatch.FromClient(k.Client, open, o.Tweak)
	}
	informer := New(spec)
	if o.Transform != nil {
		if err := informer.SetTransform(o.Transform); err != nil {
			// It has not started.
			panic(fmt.Sprintf("factory: a new informer of %s refused its transform: %v", gvr, err))
		}
	}
	return informer
}

// isPath reports whether the namespace and the resource are valid in a path. If they are not,
// client-go's client reports the error.
func isPath(namespace string, gvr schema.GroupVersionResource) bool {
	for _, segment := range []string{namespace, gvr.Group, gvr.Version, gvr.Resource} {
		if len(rest.IsValidPathSegmentName(segment)) > 0 {
			return false
		}
	}
	return gvr.Resource != "" && gvr.Version != ""
}

// IsNil reports whether a client is nil or a nil pointer.
func IsNil(client any) bool {
	v := reflect.ValueOf(client)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// Generic returns an informer with a lister, whose errors name the resource. Two results are
// equal if informer and resource are.
func Generic(informer cache.SharedIndexInformer,
	resource schema.GroupResource) informers.GenericInformer {
	return generic{informer, resource, nil}
}

type generic struct {
	informer cache.SharedIndexInformer
	resource schema.GroupResource
	none     runtime.Object // see anyLister
}

func (g generic) Informer() cache.SharedIndexInformer { return g.informer }

func (g generic) Lister() cache.GenericLister {
	l := tidingscache.NewGenericLister(g.informer.GetIndexer(), g.resource)
	if g.none == nil {
		return l
	}
	return lister{anyLister{l, g.none}, l.ByNamespace}
}

// lister is the lister of a kind whose objects have one Go type.
type lister struct {
	anyLister
	byNamespace func(string) cache.GenericNamespaceLister
}

func (l lister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	return anyLister{l.byNamespace(namespace), l.none}
}

// anyLister is a lister whose lists are not nil, and whose Get returns none, a nil pointer of the
// kind's type, with an error: client-go's listers of dynamic and metadata objects do.
type anyLister struct {
	cache.GenericNamespaceLister
	none runtime.Object
}

func (l anyLister) List(selector labels.Selector) ([]runtime.Object, error) {
	found, err := l.GenericNamespaceLister.List(selector)
	if found == nil && err == nil {
		found = []runtime.Object{}
	}
	return found, err
}

func (l anyLister) Get(name string) (runtime.Object, error) {
	obj, err := l.GenericNamespaceLister.Get(name)
	if err != nil {
		return l.none, err
	}
	return obj, nil
}
