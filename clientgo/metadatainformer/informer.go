package metadatainformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/metadata/metadatalister"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/byresource"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

type (
	// SharedInformerFactory is client-go's interface of that name.
	SharedInformerFactory = metadatainformer.SharedInformerFactory
	// TweakListOptionsFunc is client-go's type of that name: it changes the options of
	// every list and watch.
	TweakListOptionsFunc = metadatainformer.TweakListOptionsFunc
)

// NewSharedInformerFactory returns a factory of informers of all namespaces.
// defaultResync is the resync period of handlers that ask for none of their own; 0 means
// no resyncs.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync)
}

// NewFilteredSharedInformerFactory returns a factory of informers of a namespace, ""
// being all, whose lists and watches have their options changed by tweakListOptions,
// unless it is nil.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return NewSharedInformerFactoryWithOptions(client, defaultResync, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewSharedInformerFactoryWithOptions returns a factory with options, which apply in order.
// See NewSharedInformerFactory for the other parameters.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration, options ...SharedInformerOption) SharedInformerFactory {
	o := optionsOf(options)
	if o.Among == nil {
		o.Among = new(source.Table)
	}
	return byresource.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return newInformer(client, gvr, defaultResync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, o)
	})
}

// NewFilteredMetadataInformer returns an informer of the metadata of a resource that no
// factory shares. A nil client is an error that it meets, and reports, when it runs: until
// then its store can be filled and read.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	return NewMetadataInformerWithOptions(client, gvr, resyncPeriod, indexers, WithNamespace(namespace), WithTweakListOptions(tweakListOptions))
}

// NewMetadataInformerWithOptions is NewFilteredMetadataInformer with the options of a factory.
func NewMetadataInformerWithOptions(client metadata.Interface, gvr schema.GroupVersionResource, resyncPeriod time.Duration, indexers cache.Indexers, options ...SharedInformerOption) informers.GenericInformer {
	return newInformer(client, gvr, resyncPeriod, indexers, optionsOf(options))
}

func optionsOf(options []SharedInformerOption) byresource.Options {
	o := byresource.Options{Namespace: metav1.NamespaceAll}
	for _, set := range options {
		set(&o)
	}
	return o
}

func newInformer(client metadata.Interface, gvr schema.GroupVersionResource, resyncPeriod time.Duration, indexers cache.Indexers, o byresource.Options) informers.GenericInformer {
	lister := func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) {
		if isNil(client) {
			return nil, errNilClient
		}
		return client.Resource(gvr).Namespace(o.Namespace), nil
	}
	return &informer{gvr: gvr, informer: byresource.NewInformer(byresource.Making{
		Resource: gvr, ResyncPeriod: resyncPeriod, Indexers: indexers, Options: o,
		Example: &metav1.PartialObjectMetadata{},
		Reads:   readsOf(client),
		Open: func(c *source.Client, of source.Resource, o source.RESTOptions) source.Source[any] {
			o.NoKind = true
			return listwatch.Untyped(source.Source[*metav1.PartialObjectMetadata](source.NewMetadata(c, of, o)))
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
	return metadatalister.NewRuntimeObjectShim(metadatalister.New(i.informer.GetIndexer(), i.gvr))
}
