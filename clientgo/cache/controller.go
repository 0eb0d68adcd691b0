package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
)

// NewInformer returns a cache and the controller that fills it and calls a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler) (Store, Controller) {
	return NewTransformingIndexerInformer(lw, objType, resyncPeriod, h, nil, nil)
}

// NewIndexerInformer returns a cache with indexes and the controller that fills it and
// calls a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	return NewTransformingIndexerInformer(lw, objType, resyncPeriod, h, indexers, nil)
}

// NewTransformingInformer returns a cache of transformed objects and the controller that
// fills it and calls a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewTransformingInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration,
	h ResourceEventHandler, transformer TransformFunc) (Store, Controller) {
	return NewTransformingIndexerInformer(lw, objType, resyncPeriod, h, nil, transformer)
}

// NewTransformingIndexerInformer returns a cache of transformed objects with indexes and
// the controller that fills it and calls a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewTransformingIndexerInformer(lw ListerWatcher, objType runtime.Object,
	resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers,
	transformer TransformFunc) (Indexer, Controller) {
	return newInformer(InformerOptions{
		ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h,
		Indexers: indexers, Transform: transformer,
	})
}

// NewInformerWithOptions returns a cache and the controller that fills it and calls one handler,
// with Tidings' engine. The controller has synced when the handler has returned from every add
// of the first list. The handler receives no call for the writes of a program to the cache.
//
// It panics when the ListerWatcher is nil or an index has no name or no function.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	return newInformer(options)
}

func newInformer(options InformerOptions) (Indexer, Controller) {
	mustHave(options.ListerWatcher, "NewInformerWithOptions")
	o := sharedinformer.FromListerWatcher(options.ListerWatcher, sharedinformer.Options{
		Example: options.ObjectType, ResyncPeriod: options.ResyncPeriod, Indexers: options.Indexers,
		MinWatchTimeout: options.MinWatchTimeout, Logger: options.Logger,
		Identifier: options.Identifier, Metrics: options.InformerMetricsProvider,
	}, nil)
	informer := sharedinformer.NewDedicated(o, options.Handler, options.Transform)
	return informer.GetIndexer(), informer
}
