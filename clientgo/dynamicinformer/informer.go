package dynamicinformer

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

type (
	// DynamicSharedInformerFactory is client-go's interface of that name.
	DynamicSharedInformerFactory = dynamicinformer.DynamicSharedInformerFactory
	// TweakListOptionsFunc is client-go's type of that name: it changes the options of every
	// list and watch.
	TweakListOptionsFunc = dynamicinformer.TweakListOptionsFunc
)

// NewDynamicSharedInformerFactory returns a factory of informers of all namespaces.
// defaultResync is the resync period of handlers that set none of their own; 0 means no
// resyncs.
func NewDynamicSharedInformerFactory(client dynamic.Interface,
	defaultResync time.Duration) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredDynamicSharedInformerFactory returns a factory of informers of a namespace, ""
// being all. tweakListOptions, unless it is nil, changes the options of lists and watches.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return NewDynamicSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace),
		WithTweakListOptions(tweakListOptions))
}

// NewDynamicSharedInformerFactoryWithOptions returns a factory with options, which client-go
// does not have; they apply in order. See NewDynamicSharedInformerFactory for the other
// parameters.
func NewDynamicSharedInformerFactoryWithOptions(client dynamic.Interface,
	defaultResync time.Duration, options ...SharedInformerOption) DynamicSharedInformerFactory {
	return &factory.Resources{Kind: kindOf(client), Resync: defaultResync,
		Options: factory.Apply(options)}
}

// NewFilteredDynamicInformer returns an informer of a resource that no factory shares. With a
// nil client its store can be filled and read, and it reports an error when it runs.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource,
	namespace string, resyncPeriod time.Duration, indexers cache.Indexers,
	tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return NewDynamicInformerWithOptions(client, gvr, resyncPeriod, indexers,
		WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewDynamicInformerWithOptions is NewFilteredDynamicInformer with the options of a factory.
func NewDynamicInformerWithOptions(client dynamic.Interface, gvr schema.GroupVersionResource,
	resyncPeriod time.Duration, indexers cache.Indexers,
	options ...SharedInformerOption) informers.GenericInformer {
	return kindOf(client).NewInformer(gvr, resyncPeriod, indexers, factory.Apply(options))
}

// kindOf returns the way in which a client is read: with our own source if it is a *Client.
func kindOf(client dynamic.Interface) factory.Kind {
	k := factory.Kind{Example: &unstructured.Unstructured{}, Client: client}
	k.List = func(gvr schema.GroupVersionResource, namespace string) (listwatch.Client, error) {
		if isNil(client) {
			return nil, errNilClient
		}
		return listwatch.ClientOf(client.Resource(gvr).Namespace(namespace)), nil
	}
	if c, ok := client.(*Client); ok && c != nil {
		k.Own = c.own
	}
	k.Open = func(of source.Resource, o source.RESTOptions) source.Source[any] {
		return listwatch.Untyped[*unstructured.Unstructured](source.NewDynamic(k.Own, of, o), nil)
	}
	return k
}
