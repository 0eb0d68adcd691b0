package sharedinformer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/internal/dedup"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Errors of an informer that is asked too late.
var (
	// ErrStarted is a setting that has to be made before Run.
	ErrStarted = errors.New("the informer has started: set it before Run")
	// ErrStopped is a handler or an index for an informer that has stopped.
	ErrStopped = errors.New("the informer has stopped already and does not start again: make a new one")
)

// Options are what an informer is made of. Source is required.
type Options struct {
	// Source is what is listed and watched.
	Source source.Source[any]
	// Unshared yields the same objects as Source, but such as may be changed; it is used
	// where a transform is set. nil says that those of Source may be, and that they share
	// nothing yet.
	Unshared source.Source[any]
	// Sharing says what cached objects have in common, those that Source has not shared
	// and those that a transform returns.
	Sharing listwatch.Sharing
	// Versions says whether the versions of Source are compared; nil compares them.
	Versions *listwatch.Versions
	// NoStreamedLists says that Source cannot stream its initial state.
	NoStreamedLists bool
	// Example is an object of the type that is cached; nil is any type.
	Example runtime.Object
	// Description names the objects in logs and errors; "" is the type of Example.
	Description string
	// ResyncPeriod is the resync period of handlers that ask for none of their own,
	// and the longest time between two looks at which handlers are due; 0 means that
	// the informer does no resyncs.
	ResyncPeriod time.Duration
	// Indexers are the index functions by name.
	Indexers cache.Indexers
	// MinWatchTimeout is the least time after which a watch is begun anew; less than
	// 5 minutes means 5 minutes.
	MinWatchTimeout time.Duration
	// PageSize is how many objects a page of a list asks for; 0 is the default.
	PageSize int64
	// Identifier names the informer in metrics, and Metrics makes those; nil is the
	// provider that was set for the process.
	Identifier cache.InformerNameAndResource
	Metrics    cache.InformerMetricsProvider
	// Logger is used instead of that of Run's context; nil leaves it.
	Logger *klog.Logger

	reports *reporter // of what Source reports; nil if it reports nothing
}

// FromListerWatcher returns o with lw as its source.
func FromListerWatcher(lw cache.ListerWatcher, o Options) Options {
	o.reports = new(reporter)
	o.Source, o.Versions = listwatch.New(lw, o.Example, o.reports.dropped)
	o.NoStreamedLists = !o.Versions.Trusted()
	o.Sharing = listwatch.SharingOf(lw)
	return o
}

// Informer is a cache.SharedIndexInformer. Make one with [New].
//
// Its goroutines belong to RunWithContext, which waits for all of them: the reflector,
// the processor that applies what the queue brings, the clock of the resyncs and the
// mutation detector. Those of the handlers belong to the log, which it closes last.
type Informer struct {
	o        Options
	name     string
	store    *store.Store[any]
	queue    *delta.Queue[any]
	fan      *fanout.Log[any]
	indexer  *indexer
	detector cache.MutationDetector
	metrics  *metrics
	reports  *reporter
	synced   chan struct{} // closed when the first complete list is applied
	listed   chan struct{} // one token: a list was applied, the resync clock starts anew

	// ownVersions says that the transform has given an object another version, so that those
	// of cached objects are not compared with the server's: every change is newer.
	ownVersions atomic.Bool

	lastIndexError atomic.Pointer[store.IndexError]
	indexReported  atomic.Int64 // when one was last reported, in nanoseconds; 0 never

	// writing is held while a batch is applied and published, while a handler joins
	// and while someone writes to the indexer: that makes the snapshot a handler
	// starts from the same state as the end of the log. It comes after mu.
	writing  lock
	takenOut takenOut

	mu          lock // guards the rest
	started     bool
	stopped     bool
	reflector   *reflector.Reflector[any]
	transform   cache.TransformFunc
	sharer      *dedup.Sharer // of objects that come unshared; nil for none, and before Run
	watchError  cache.WatchErrorHandlerWithContext
	resyncCheck time.Duration // how often handlers are looked at for resyncs; 0 never
	handlers    []*registration
}

var (
	_ cache.SharedIndexInformer              = (*Informer)(nil)
	_ cache.ResourceEventHandlerRegistration = (*registration)(nil)
)

// New returns an informer. It panics when an index has no name or no function, which
// client-go would do with the first object.
func New(o Options) *Informer {
	i := &Informer{
		o: o, name: o.Description, reports: cmp.Or(o.reports, new(reporter)),
		synced: make(chan struct{}), listed: make(chan struct{}, 1),
		writing: newLock(), mu: newLock(),
		resyncCheck: o.ResyncPeriod,
		detector:    cache.NewCacheMutationDetector(fmt.Sprintf("%T", o.Example)),
	}
	if i.name == "" {
		i.name = describeType(o.Example)
	}
	var err error
	if i.store, err = store.New(store.Options[any]{Indexes: indexFuncs(o.Indexers), OnIndexError: i.indexFailed}); err != nil {
		panic(fmt.Sprintf("cache: informer of %s: %v", i.name, err))
	}
	if o.Versions != nil {
		o.Versions.LookIn(i.store.Get)
	}
	i.indexer = newIndexer(i, o.Indexers)
	i.queue, err = delta.New(delta.Options[any]{
		Known:           i.cached,
		Describe:        i.describe,
		Compare:         i.compare,
		ReportUnchanged: true,
	})
	if err != nil {
		panic(fmt.Sprintf("cache: informer of %s: %v", i.name, err))
	}
	i.fan = fanout.New(fanout.Options[any]{UID: uidOf, Paused: true})
	i.metrics = newMetrics(o.Identifier, o.Metrics)
	return i
}

// compare orders versions as far as the source is trusted with them.
func (i *Informer) compare(a, b string) (order int, ok bool) {
	if i.o.Versions == nil {
		return delta.CompareDecimal(a, b)
	}
	return i.o.Versions.Compare(a, b)
}

func (i *Informer) versionsTrusted() bool { return i.o.Versions == nil || i.o.Versions.Trusted() }

// GetStore returns the cache.
func (i *Informer) GetStore() cache.Store { return i.indexer }

// GetIndexer returns the cache with its indexes.
func (i *Informer) GetIndexer() cache.Indexer { return i.indexer }

// AddIndexers adds indexes, at any time before the informer stops. Objects that are
// cached are indexed before it returns. A name that exists is an error, and none of
// the indexes is added.
func (i *Informer) AddIndexers(indexers cache.Indexers) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return fmt.Errorf("add indexers %q to the informer of %s: %w", names(indexers), i.name, ErrStopped)
	}
	return i.indexer.AddIndexers(indexers)
}

// SetTransform sets the function that replaces objects before they are cached.
func (i *Informer) SetTransform(transform cache.TransformFunc) error {
	return i.beforeStart("set the transform", func() { i.transform = transform })
}

// SetWatchErrorHandler sets what is called when listing and watching fails.
func (i *Informer) SetWatchErrorHandler(handler cache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(func(_ context.Context, r *cache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext sets what is called when listing and watching fails.
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
func (i *Informer) HasStarted() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.started
}

// IsStopped reports whether the informer has stopped.
func (i *Informer) IsStopped() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stopped
}

// HasSynced reports whether the cache holds the first complete list.
func (i *Informer) HasSynced() bool { return cache.IsDone(i.HasSyncedChecker()) }

// HasSyncedChecker is done when the cache holds the first complete list.
func (i *Informer) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{"SharedIndexInformer " + i.name, i.synced}
}

// LastSyncResourceVersion returns the version up to which everything was read. The
// cache may be behind it; its own version is LastStoreSyncResourceVersion of the store.
func (i *Informer) LastSyncResourceVersion() string {
	i.mu.Lock()
	r := i.reflector
	i.mu.Unlock()
	if r == nil {
		return ""
	}
	return r.Health().Version
}

// GetController returns what tells of the informer's progress. Its Run does nothing:
// whoever owns the informer runs it.
func (i *Informer) GetController() cache.Controller { return controller{i} }

// controller is what GetController returns.
type controller struct{ informer *Informer }

func (controller) Run(<-chan struct{})            {}
func (controller) RunWithContext(context.Context) {}

func (c controller) HasSynced() bool                     { return c.informer.HasSynced() }
func (c controller) HasSyncedChecker() cache.DoneChecker { return c.informer.HasSyncedChecker() }

func (c controller) LastSyncResourceVersion() string {
	if !clientfeatures.FeatureGates().Enabled(clientfeatures.InformerResourceVersion) {
		return ""
	}
	return c.informer.LastSyncResourceVersion()
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

// names returns the names of indexers, ascending.
func names(indexers cache.Indexers) []string {
	list := make([]string, 0, len(indexers))
	for name := range indexers {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}
