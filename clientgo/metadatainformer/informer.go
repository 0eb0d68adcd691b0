package metadatainformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

type (
	// SharedInformerFactory is client-go's interface of that name.
	SharedInformerFactory = metadatainformer.SharedInformerFactory
	// TweakListOptionsFunc is client-go's type of that name: it changes the options of every
	// list and watch.
	TweakListOptionsFunc = metadatainformer.TweakListOptionsFunc
)

// NewSharedInformerFactory returns a factory of informers of all namespaces.
// defaultResync is the resync period of handlers that set none of their own; 0 means no
// resyncs.
func NewSharedInformerFactory(client metadata.Interface,
	defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory of informers of a namespace, ""
// being all. tweakListOptions, unless it is nil, changes the options of lists and watches.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration,
	namespace string, tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace),
		WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions returns a factory with options, which apply in order.
// See NewSharedInformerFactory for the other parameters.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration,
	options ...SharedInformerOption) SharedInformerFactory {
	return &factory.Resources{Kind: kindOf(client), Resync: defaultResync,
		Options: factory.Apply(options)}
}

// NewFilteredMetadataInformer returns an informer of the metadata of a resource that no factory
// shares. With a nil client its store can be filled and read, and it reports an error when it
// runs.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource,
	namespace string, resyncPeriod time.Duration, indexers cache.Indexers,
	tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return NewMetadataInformerWithOptions(client, gvr, resyncPeriod, indexers,
		WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewMetadataInformerWithOptions is NewFilteredMetadataInformer with the options of a factory.
func NewMetadataInformerWithOptions(client metadata.Interface, gvr schema.GroupVersionResource,
	resyncPeriod time.Duration, indexers cache.Indexers,
	options ...SharedInformerOption) informers.GenericInformer {
	return kindOf(client).NewInformer(gvr, resyncPeriod, indexers, factory.Apply(options))
}

// kindOf returns the way in which a client is read: with our own source if it is a *Client.
func kindOf(client metadata.Interface) factory.Kind {
	k := factory.Kind{Example: &metav1.PartialObjectMetadata{}, Client: client}
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
		o.NoKind = true
		return listwatch.Untyped[*metav1.PartialObjectMetadata](source.NewMetadata(k.Own, of, o), nil)
	}
	return k
}
