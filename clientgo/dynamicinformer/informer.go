package dynamicinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/dynamic/dynamiclister"
	"k8s.io/client-go/informers"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/byresource"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

type (
	// DynamicSharedInformerFactory is client-go's interface of that name.
	DynamicSharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory
	// TweakListOptionsFunc is client-go's type of that name: it changes the options of
	// every list and watch.
	TweakListOptionsFunc = dynamicinformer.TweakListOptionsFunc
)

// NewDynamicSharedInformerFactory returns a factory of informers of all namespaces.
// defaultResync is the resync period of handlers that ask for none of their own; 0 means
// no resyncs.
func NewDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredDynamicSharedInformerFactory returns a factory of informers of a namespace,
// "" being all, whose lists and watches have their options changed by tweakListOptions,
// unless it is nil.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewDynamicSharedInformerFactoryWithOptions returns a factory with options, which client-go
// has none of; they apply in order. See NewDynamicSharedInformerFactory for the other
// parameters.
func NewDynamicSharedInformerFactoryWithOptions(client dynamic.Interface, defaultResync time.Duration, options ...SharedInformerOption) DynamicSharedInformerFactory {
	o := optionsOf(options)
	if o.Among == nil {
		o.Among = new(source.Table)
	}
	return byresource.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return newInformer(client, gvr, defaultResync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, o)
	})
}

// NewFilteredDynamicInformer returns an informer of a resource that no factory shares. A
// nil client is an error that it meets, and reports, when it runs: until then its store
// can be filled and read.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return NewDynamicInformerWithOptions(client, gvr, resyncPeriod, indexers, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewDynamicInformerWithOptions is NewFilteredDynamicInformer with the options of a factory.
func NewDynamicInformerWithOptions(client dynamic.Interface, gvr schema.GroupVersionResource, resyncPeriod time.Duration, indexers cache.Indexers, options ...SharedInformerOption) informers.GenericInformer {
	return newInformer(client, gvr, resyncPeriod, indexers, optionsOf(options))
}

func optionsOf(options []SharedInformerOption) byresource.Options {
	o := byresource.Options{Namespace: metav1.NamespaceAll}
	for _, set := range options {
		set(&o)
	}
	return o
}

func newInformer(client dynamic.Interface, gvr schema.GroupVersionResource, resyncPeriod time.Duration, indexers cache.Indexers, o byresource.Options) informers.GenericInformer {
	lister := func() (byresource.Lister[*unstructured.UnstructuredList], error) {
		if isNil(client) {
			return nil, errNilClient
		}
		return client.Resource(gvr).Namespace(o.Namespace), nil
	}
	return &informer{gvr: gvr, informer: byresource.NewInformer(byresource.Making{
		Resource: gvr, ResyncPeriod: resyncPeriod, Indexers: indexers, Options: o,
		Example: &unstructured.Unstructured{},
		Reads:   readsOf(client),
		Open: func(c *source.Client, of source.Resource, o source.RESTOptions) source.Source[any] {
			return listwatch.Untyped(source.Source[*unstructured.Unstructured](source.NewDynamic(c, of, o)))
		},
		ListWatch: byresource.ListWatch(client, lister, o.Tweak),
	})}
}

// informer is an informers.GenericInformer.
type informer struct {
	gvr      schema.GroupVersionResource
	informer cache.SharedIndexInformer
}

func (i *informer) Informer() cache.SharedIndexInformer { return i.informer }

func (i *informer) Lister() cache.GenericLister {
	return dynamiclister.NewRuntimeObjectShim(dynamiclister.New(i.informer.GetIndexer(), i.gvr))
}
