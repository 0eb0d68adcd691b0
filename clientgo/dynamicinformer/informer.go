package dynamicinformer

import (
	"errors"
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
	return NewFilteredDynamicSharedInformerFactory(client, defaultResync, metav1.NamespaceAll, nil)
}

// NewFilteredDynamicSharedInformerFactory returns a factory of informers of a namespace,
// "" being all, whose lists and watches have their options changed by tweakListOptions,
// unless it is nil.
func NewFilteredDynamicSharedInformerFactory(client dynamic.Interface, defaultResync time.Duration, namespace string, tweakListOptions TweakListOptionsFunc) DynamicSharedInformerFactory {
	return byresource.New(func(gvr schema.GroupVersionResource) informers.GenericInformer {
		return NewFilteredDynamicInformer(client, gvr, namespace, defaultResync, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}, tweakListOptions)
	})
}

// NewFilteredDynamicInformer returns an informer of a resource that no factory shares. A
// nil client is an error that it meets, and reports, when it runs: until then its store
// can be filled and read.
func NewFilteredDynamicInformer(client dynamic.Interface, gvr schema.GroupVersionResource, namespace string, resyncPeriod time.Duration, indexers cache.Indexers, tweakListOptions TweakListOptionsFunc) informers.GenericInformer {
	open := func() (byresource.Lister[*unstructured.UnstructuredList], error) {
		if isNil(client) {
			return nil, errNilClient
		}
		return client.Resource(gvr).Namespace(namespace), nil
	}
	return &informer{gvr: gvr, informer: cache.NewSharedIndexInformerWithOptions(
		byresource.ListWatch(client, open, tweakListOptions),
		&unstructured.Unstructured{},
		cache.SharedIndexInformerOptions{ResyncPeriod: resyncPeriod, Indexers: indexers, ObjectDescription: gvr.String()},
	)}
}

// errNilClient is what an informer without a client fails with when it runs.
var errNilClient = errors.New("dynamicinformer: the client is nil: make one with dynamic.NewForConfig")

// isNil also knows a client's typed nil.
func isNil(client dynamic.Interface) bool {
	real, ok := client.(*dynamic.DynamicClient)
	return client == nil || ok && real == nil
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
