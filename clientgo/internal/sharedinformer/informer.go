package sharedinformer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/see/lograte"
)

// Informer is a cache.SharedIndexInformer. Make one with [New].
type Informer struct {
	o          Options
	name       string
	collection *engine.Collection[any]
	indexer    *indexer
	detector   cache.MutationDetector
	metrics    *metrics
	reports    *reporter

	// ownVersions reports whether the transform has given an object another version. Then the
	// versions of cached objects are not compared with the server's: every change is newer.
	ownVersions atomic.Bool
	// sharer shares parts of the objects for which Source has not done so; nil without such
	// objects, and before Run.
	sharer       atomic.Pointer[dedup.Sharer]
	indexReports lograte.Limiter // limits the reports of index functions that failed
	manualWrites manualWrites

	mu           engine.Lock // guards the rest; before the locks of the collection
	started      bool
	logger       klog.Logger // of Run
	transform    cache.TransformFunc
	watchError   cache.WatchErrorHandlerWithContext
	watchErrors  *watchErrors  // of the running reflector; nil without a handler
	resyncPeriod time.Duration // the period of the resync timer; 0 is no timer
	handlers     []*registration
}

var (
	_ cache.SharedIndexInformer              = (*Informer)(nil)
	_ cache.ResourceEventHandlerRegistration = (*registration)(nil)
)

// New returns an informer. It panics when an index has no name or no function, which
// client-go would do with the first object.
func New(o Options) *Informer {
	o.Versions = cmp.Or(o.Versions, new(listwatch.Versions))
	o.Resource = cmp.Or(o.Resource, resourceOf(o.Example))
	i := &Informer{
		o: o, name: cmp.Or(o.Description, describeType(o.Example)),
		reports: cmp.Or(o.reports, new(reporter)), mu: engine.NewLock(), resyncPeriod: o.ResyncPeriod,
		detector: cache.NewCacheMutationDetector(fmt.Sprintf("%T", o.Example)),
		metrics:  newMetrics(o.Identifier, o.Metrics),
	}
	var err error
	if i.collection, err = engine.New(i.engineOptions()); err != nil {
		panic(fmt.Sprintf("cache: informer of %s: %v", i.name, err))
	}
	o.Versions.LookIn(i.collection.Store().Get)
	i.indexer = newIndexer(i, o.Indexers)
	return i
}

// RunWithContext lists and watches until ctx ends. When it returns, every goroutine of
// the informer has ended, those of the handlers last; a handler that does not return
// delays it and is named in the log. A second call logs a warning and returns.
func (i *Informer) RunWithContext(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if i.o.Logger != nil {
		logger = *i.o.Logger
		ctx = klog.NewContext(ctx, logger)
	}
	ctx, err := i.claim(ctx, logger)
	if err != nil {
		logger.Info("Warning: the informer was run before; it runs once", "informer", i.name)
		return
	}
	if i.o.Fallback != "" {
		level := 0
		if i.versionsUntrusted() { // a fake, as tests have it
			level = 4
		}
		logger.V(level).Info("The informer reads through the program's client",
			"informer", i.name, "reason", i.o.Fallback)
	}
	_ = i.collection.Run(ctx) // waits for handlers without a limit, so that it returns no error
	i.reports.wait()
}

// claim takes the one right to run. The settings do not change afterwards.
func (i *Informer) claim(ctx context.Context, logger klog.Logger) (context.Context, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	ctx, err := i.collection.Claim(ctx)
	if err != nil {
		return nil, err
	}
	i.started, i.logger = true, logger
	if i.transform != nil || i.o.Open == nil {
		i.sharer.Store(i.o.Sharing.Sharer())
	}
	return ctx, nil
}

// GetStore returns the cache.
func (i *Informer) GetStore() cache.Store { return i.indexer }

// GetIndexer returns the cache with its indexes.
func (i *Informer) GetIndexer() cache.Indexer { return i.indexer }

// AddIndexers adds indexes, at any time before the informer stops. Objects that are
// cached are indexed before it returns. A name that exists is an error, and none of
// the indexes is added.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	if i.IsStopped() {
		return fmt.Errorf("add indexers %q to the informer of %s: %w",
			names(indexers), i.name, ErrStopped)
	}
	return i.indexer.AddIndexers(indexers)
}

// SetTransform sets the function that replaces objects before they are cached.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart("set the transform", func() { i.transform = transform })
}

// SetWatchErrorHandler sets the function that is called when listing and watching fails.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(
		func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext sets the function that is called when listing and watching
// fails.
func (i *Informer) SetWatchErrorHandlerWithContext(handler cache.WatchErrorHandlerWithContext) error {
	return i.beforeStart("set the watch error handler", func() { i.watchError = handler })
}

func (i *Informer) beforeStart(what string, set func()) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return fmt.Errorf("%s of the informer of %s: %w", what, i.name, ErrStarted)
	}
	set()
	return nil
}

// HasStarted reports whether the informer was run.
func (i *Informer) HasStarted() bool { return i.collection.Started() }

// IsStopped reports whether the informer has stopped.
func (i *Informer) IsStopped() bool { return i.collection.IsStopped() }

// HasSynced reports whether the cache holds the first complete list.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker returns a checker that is done when the cache holds the first complete
// list.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{"SharedIndexInformer " + i.name, i.collection.Synced()}
}

// LastSyncResourceVersion returns the version up to which the informer has read all changes. The
// cache may be behind it: LastStoreSyncResourceVersion of the store returns the version of the
// cache.
func (i *Informer) LastSyncResourceVersion() string { return i.collection.ReadVersion() }

// GetController returns a controller that reports the informer's progress. Its Run does
// nothing: the owner of the informer runs it.
func (i *Informer) GetController() cache.Controller { return controller{i} }

// controller is the result of GetController.
type controller struct{ *Informer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}

func (c controller) LastSyncResourceVersion() string {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.InformerResourceVersion) {
		return ""
	}
	return c.Informer.LastSyncResourceVersion()
}

// Run is RunWithContext with a channel that ends it.
func (i *Informer) Run(stopCh <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stopCh)) }

// doneChecker is a name and a channel.
type doneChecker struct {
	name string
	done <-chan struct{}
}

func (d doneChecker) Name() string          { return d.name }
func (d doneChecker) Done() <-chan struct{} { return d.done }

func names(indexers cache.Indexers) []string { return slices.Sorted(maps.Keys(indexers)) }
