package cache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tidings-go/tidings/clientgo/internal/sharedinformer"
)

// NewInformer returns a cache and the controller that fills it and tells a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h})
}

// NewIndexerInformer returns a cache with indexes and the controller that fills it and
// tells a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers})
}

// NewTransformingInformer returns a cache of transformed objects and the controller that
// fills it and tells a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewTransformingInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, transformer TransformFunc) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Transform: transformer})
}

// NewTransformingIndexerInformer returns a cache of transformed objects with indexes and
// the controller that fills it and tells a handler.
//
// Deprecated: client-go deprecates it; use NewInformerWithOptions.
func NewTransformingIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers, transformer TransformFunc) (Indexer, Controller) {
	return newInformer(InformerOptions{ListerWatcher: lw, ObjectType: objType, ResyncPeriod: resyncPeriod, Handler: h, Indexers: indexers, Transform: transformer})
}

// NewInformerWithOptions returns a cache and the controller that fills it and tells one
// handler, with Tidings' engine. The controller has synced when the handler has returned
// from every add of the first list. The cache is for reading; the handler is told
// nothing of what is written to it.
//
// It panics when the ListerWatcher is nil or an index has no name or no function.
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	return newInformer(options)
}

func newInformer(options InformerOptions) (Indexer, Controller) {
	mustHave(options.ListerWatcher, "NewInformerWithOptions")
	informer, handler := sharedinformer.NewDedicated(sharedinformer.FromListerWatcher(options.ListerWatcher, sharedinformer.Options{
		Example: options.ObjectType, ResyncPeriod: options.ResyncPeriod, Indexers: options.Indexers,
		MinWatchTimeout: options.MinWatchTimeout, Logger: options.Logger,
		Identifier: options.Identifier, Metrics: options.InformerMetricsProvider,
	}), options.Handler, options.Transform)
	return informer.GetIndexer(), &dedicatedController{informer: informer, handler: handler}
}

// dedicatedController runs an informer with one handler.
type dedicatedController struct {
	informer *sharedinformer.Informer
	handler  interface {
		HasSynced() bool
		HasSyncedChecker() DoneChecker
	}
}

func (c *dedicatedController) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}
func (c *dedicatedController) RunWithContext(ctx context.Context) { c.informer.RunWithContext(ctx) }
func (c *dedicatedController) HasSynced() bool                    { return c.handler.HasSynced() }
func (c *dedicatedController) HasSyncedChecker() DoneChecker      { return c.handler.HasSyncedChecker() }
func (c *dedicatedController) LastSyncResourceVersion() string {
	return c.informer.LastSyncResourceVersion()
}

// New returns a controller that lists and watches with Tidings' reflector, hands
// everything to the queue of the configuration and has its Process function called with
// what that yields. Queue and Process are the program's, and with them the order and the
// memory of what is pending.
//
// It panics when the configuration has no Queue or no ListerWatcher.
func New(c *Config) Controller {
	mustHave(c.ListerWatcher, "New")
	if c.Queue == nil {
		panic("cache.New: Config.Queue is nil: pass one of NewRealFIFOWithOptions")
	}
	return sharedinformer.NewQueueController(c)
}
