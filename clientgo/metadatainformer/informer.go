package metadatainformer

import (
	"errors"
	"fmt"
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

// SharedInformerOption is an option of NewSharedInformerFactoryWithOptions. client-go's
// type of that name is for its own factory, which nobody else can make.
type SharedInformerOption func(*options)

type options struct {
	namespace string
	tweak     TweakListOptionsFunc
	transform cache.TransformFunc
}

// WithTransform sets a transform on all informers.
func WithTransform(transform cache.TransformFunc) SharedInformerOption {
	return func(o *options) { o.transform = transform }
}

// NewSharedInformerFactory returns a factory of informers of all namespaces.
// defaultResync is the resync period of handlers that ask for none of their own; 0 means
// no resyncs.
func NewSharedInformerFactory(client metadata.Interface, defaultResync time.Duration) SharedInformerFactory {
	return newFactory(client, defaultResync, options{namespace: metav1.NamespaceAll})
}

// NewFilteredSharedInformerFactory returns a factory of informers of a namespace, ""
// being all, whose lists and watches have their options changed by tweakListOptions,
// unless it is nil.
func NewFilteredSharedInformerFactory(client metadata.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) SharedInformerFactory {
	return newFactory(client, defaultResync, options{namespace: namespace, tweak: tweakListOptions})
}

// NewSharedInformerFactoryWithOptions returns a factory of informers of all namespaces
// with options.
func NewSharedInformerFactoryWithOptions(client metadata.Interface, defaultResync time.Duration, opts ...SharedInformerOption) SharedInformerFactory {
	o := options{namespace: metav1.NamespaceAll}
	for _, set := range opts {
		set(&o)
	}
	return newFactory(client, defaultResync, o)
}

func newFactory(client metadata.Interface, defaultResync time.Duration, o options) SharedInformerFactory {
	return byresource.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		made := NewFilteredMetadataInformer(client, gvr, o.namespace, defaultResync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, o.tweak)
		if o.transform != nil {
			if err := made.Informer().SetTransform(o.transform); err != nil {
				panic(fmt.Sprintf("metadatainformer: a new informer of %s refused its transform: %v", gvr, err)) // cannot be: it has not started
			}
		}
		return made
	})
}

// NewFilteredMetadataInformer returns an informer of the metadata of a resource that no
// factory shares. A nil client is an error that it meets, and reports, when it runs: until
// then its store can be filled and read.
func NewFilteredMetadataInformer(client metadata.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	open := func() (byresource.Lister[*metav1.PartialObjectMetadataList], error) {
		if isNil(client) {
			return nil, errNilClient
		}
		return client.Resource(gvr).Namespace(namespace), nil
	}
	return &informer{gvr: gvr, informer: cache.NewSharedIndexInformerWithOptions(
		listwatch.WithSharing(byresource.ListWatch(client, open, tweakListOptions), sharing(gvr)),
		&metav1.PartialObjectMetadata{},
		cache.SharedIndexInformerOptions{ResyncPeriod: resyncPeriod, Indexers: indexers, ObjectDescription: gvr.String()},
	)}
}

// sharing says what the metadata of a resource have in common: nothing if it is that of
// Secrets, whose annotations may hold what they hold.
func sharing(gvr schema.GroupVersionResource) listwatch.Sharing {
	if gvr.Group == "" && gvr.Resource == "secrets" {
		return listwatch.Sharing{AtMost: source.ShareNothing}
	}
	return listwatch.Sharing{NoSecrets: true}
}

// errNilClient is what an informer without a client fails with when it runs.
var errNilClient = errors.New("metadatainformer: the client is nil: make one with metadata.NewForConfig")

// isNil also knows a client's typed nil.
func isNil(client metadata.Interface) bool {
	real, ok := client.(*metadata.Client)
	return client == nil || ok && real == nil
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
