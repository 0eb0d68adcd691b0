package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
)

// NewSharedInformer returns an informer of the objects of lw, without indexes. See
// NewSharedIndexInformerWithOptions.
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, Indexers{})
}

// NewSharedIndexInformer returns an informer of the objects of lw. See
// NewSharedIndexInformerWithOptions. It is also the value for the option NewInformer of
// controller-runtime's cache.
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod, Indexers: indexers,
	})
}

// NewSharedIndexInformerWithOptions returns an informer of the objects of lw, with Tidings'
// engine. The objects are of the type of exampleObject; nil accepts all types. The resync period
// of the options applies to handlers that do not request another one; 0 means that the informer
// does no resyncs.
//
// It panics when lw is nil or an index has no name or no function.
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object,
	options SharedIndexInformerOptions) SharedIndexInformer {
	mustHave(lw, "NewSharedIndexInformer")
	o := sharedinformer.Options{
		Example: exampleObject, Description: options.ObjectDescription,
		ResyncPeriod: options.ResyncPeriod, Indexers: options.Indexers,
		Identifier: options.Identifier, Metrics: options.InformerMetricsProvider,
	}
	if of, ok := lw.(listwatch.Readable); ok {
		return sharedinformer.New(sharedinformer.FromReadable(of, o))
	}
	return sharedinformer.New(sharedinformer.FromListerWatcher(lw, o, nil))
}

// mustHave panics when lw is nil. client-go panics only when the informer runs.
func mustHave(lw cache.ListerWatcher, function string) {
	if lw == nil {
		panic("cache." + function + ": the ListerWatcher is nil: pass a *cache.ListWatch, or one of NewListWatchFromClient")
	}
}
