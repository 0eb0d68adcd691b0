package sharedinformer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Errors of calls that come too late.
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
	// Sharing says what cached objects have in common: those that Source has not shared,
	// and the results of a transform.
	Sharing listwatch.Sharing
	// Versions says whether the versions of Source are compared; nil compares them.
	Versions *listwatch.Versions
	// NoStreamedLists says that Source cannot stream its initial state.
	NoStreamedLists bool
	// Example is an object of the type that is cached; nil is any type.
	Example runtime.Object
	// Description names the objects in logs and errors; "" is the type of Example.
	Description string
	// ResyncPeriod is the resync period of handlers that ask for none of their own, and
	// the longest time between two decisions which handlers are due; 0 means that the
	// informer does no resyncs.
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

// engineOptions returns the rules of client-go for a collection.
func (i *Informer) engineOptions() engine.Options[any] {
	o := engine.Options[any]{
		Name: i.name, Describe: i.describe, Compare: i.compare, Untrusted: i.versionsUntrusted,
		Indexes: indexFuncs(i.o.Indexers), Known: i.manualDeletes.known, Part: i.part, Supervise: supervise,
		ReportUnchanged: true, BeforeApply: i.beforeApply, Observe: i.observe,
		Background: []func(context.Context){func(ctx context.Context) { i.detector.Run(ctx.Done()) }},
		Resync:     engine.ResyncRule{Period: i.startResyncs, Due: i.dueForResync, Apply: i.resync},
		StopGrace:  stuckReport, OnStuck: i.logStuck,
		OnIndexErrors: i.reportIndexErrors, OnNotRun: i.reportNotRun, AfterDecoding: i.afterDecoding,
	}
	if i.metrics != nil {
		o.Metrics = i.metrics
	}
	return o
}

// compare orders versions as far as the source is trusted with them.
func (i *Informer) compare(a, b string) (order int, ok bool) {
	if i.o.Versions == nil {
		return delta.CompareDecimal(a, b)
	}
	return i.o.Versions.Compare(a, b)
}

func (i *Informer) versionsUntrusted() bool { return i.o.Versions != nil && !i.o.Versions.Trusted() }

// describe returns the version and UID of a cached object, as far as they are the server's.
func (i *Informer) describe(obj any) (version, uid string) {
	version, uid = describe(obj)
	if i.ownVersions.Load() {
		version = ""
	}
	return version, uid
}

// part returns what the list and watch is made of, by the settings before Run.
func (i *Informer) part(ctx context.Context, _ string, _ source.Scope) engine.Part[any] {
	i.mu.Lock()
	defer i.mu.Unlock()
	return engine.Part[any]{Source: i.o.Source, Reflector: reflector.Options[any]{
		Transform: i.transform, AfterTransform: i.afterTransform,
		Transport: source.Transport{
			PageSize:        max(i.o.PageSize, 0), // as client-go, which takes less for its default
			NoStreamedLists: i.o.NoStreamedLists || !clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient),
			WatchTimeout:    max(i.o.MinWatchTimeout, minWatchTimeout),
		},
		PagesAfterFailure: true,
		Logger:            newLogger(ctx, i.reports),
		OnFailure:         WatchErrors(ctx, i.name, i.o.Example, i.LastSyncResourceVersion, i.watchError),
	}}
}

// afterTransform notes whether the object has a version of its own, and returns it sharing
// what it has in common with others. That comes after the program's transform, which owns
// the object that it receives.
func (i *Informer) afterTransform(received source.Item[any], made any) (any, error) {
	if version, _ := describe(made); version != "" && version != received.Version {
		i.ownVersions.Store(true)
	}
	if sharer := i.sharer.Load(); sharer != nil {
		return sharer.Share(made), nil
	}
	return made, nil
}

func (i *Informer) afterDecoding() source.SharerStats {
	if sharer := i.sharer.Load(); sharer != nil {
		return sharer.Stats()
	}
	return source.SharerStats{}
}

func (i *Informer) beforeApply(batch *delta.Batch[any]) {
	i.manualDeletes.settle(batch, i.collection.Store().Snapshot())
}

// observe gives the new states to client-go's mutation detector.
func (i *Informer) observe(changes []change.Change[any]) {
	for n := range changes {
		if changes[n].Type != change.Deleted {
			i.detector.AddObject(changes[n].New)
		}
	}
}

// indexReport is how often the failures of index functions are reported: a report takes
// a millisecond, and a list may bring thousands. Health counts all of them.
const indexReport = time.Minute

func (i *Informer) reportIndexErrors(failures []store.IndexError) {
	now := time.Now().UnixNano()
	last := i.indexReported.Load()
	if last != 0 && now-last < int64(indexReport) || !i.indexReported.CompareAndSwap(last, now) {
		return
	}
	i.reports.report(context.Background(), failures[0].Err, "An index function failed; the object has no entry in that index",
		"type", i.name, "index", fmt.Sprint(failures[0].Index), "key", source.BoundText(failures[0].Key))
}

func (i *Informer) reportNotRun(err error) {
	i.reports.report(context.Background(), err, "The reflector did not run", "type", i.name)
}
