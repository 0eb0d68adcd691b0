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
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/reflector"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// The errors of calls that come too late.
var (
	// ErrStarted is the error of a setting that has to be made before Run.
	ErrStarted = errors.New("the informer has started: set it before Run")
	// ErrStopped is the error of a handler or an index for an informer that has stopped.
	ErrStopped = errors.New("the informer has stopped already and does not start again: make a new one")
)

// Options are the parts and the options of an informer. Source or Open is required.
type Options struct {
	// Source lists and watches the objects. They share nothing yet and may be changed.
	Source source.Source[any]
	// Open opens the source of a namespace, "" being all, in place of Source, of objects that
	// share these parts at most.
	Open func(namespace string, most source.Sharing) source.Source[any]
	// Sharing selects the parts that cached objects share. It applies to objects for which Source
	// has not done so, and to the results of a transform.
	Sharing listwatch.Sharing
	// Recorder records the lists and watches of Source; nil records nothing.
	Recorder source.Recorder
	// Slots are the slots whose objects the informer has; nil is all objects.
	Slots *slot.Holding
	// Versions decides whether the versions of Source are compared; nil compares them. A
	// source whose versions are not compared is not asked for streamed lists.
	Versions *listwatch.Versions
	// Example is an object of the type that is cached; nil is any type.
	Example runtime.Object
	// Resource is the resource of the objects, as far as it is known. Zero takes the kind of
	// Example. Namespace is the one namespace that is read, "" if there are several or it is not
	// known. With ByDefault, it is opened only while the server says that the objects have one.
	Resource  source.Resource
	Namespace string
	ByDefault bool
	// Description names the objects in logs and errors; "" is the type of Example.
	Description string
	// ResyncPeriod is the resync period of handlers that do not request another one. It is also
	// the longest period of the resync timer. 0 means that the informer does no resyncs.
	ResyncPeriod time.Duration
	// Indexers are the index functions by name.
	Indexers cache.Indexers
	// MinWatchTimeout is the least duration that a watch requests from the server. Less than 5
	// minutes means 5 minutes.
	MinWatchTimeout time.Duration
	// Identifier names the informer in metrics. Metrics makes the metrics; nil is the provider
	// that was set for the process.
	Identifier cache.InformerNameAndResource
	Metrics    cache.InformerMetricsProvider
	// Logger replaces the logger of Run's context; nil keeps that one.
	Logger *klog.Logger

	// Fallback says why Source stands in the place of our own source; "" if it does not.
	Fallback string

	reports *reporter // the reporter of Source; nil if Source does not report
}

// minWatchTimeout is the least duration of a watch that client-go requests. API servers are
// dimensioned for it.
const minWatchTimeout = 5 * time.Minute

// stuckReport is the period at which Run logs the names of handlers that delay its end.
const stuckReport = 10 * time.Second

// FromListerWatcher returns o with lw as its source, and with the Sharing and the Recorder of lw.
// edit is listwatch.Options.Edit.
func FromListerWatcher(lw cache.ListerWatcher, o Options, edit func(runtime.Object)) Options {
	o.reports = new(reporter)
	o.Source, o.Versions = listwatch.New(lw, listwatch.Options{
		Example: o.Example, Resource: o.Resource, Namespace: o.Namespace,
		Edit: edit, Report: o.reports.dropped,
	})
	o.Sharing, o.Recorder = listwatch.SharingOf(lw), listwatch.RecorderOf(lw)
	return o
}

// FromReadable returns o with the source that lw names.
func FromReadable(lw listwatch.Readable, o Options) Options {
	_, resource, options := lw.Reading()
	o.Resource, o.Recorder = resource, options.Recorder
	o.Sharing = listwatch.SharingFor(resource, options.Sharing, options.Table)
	o.Open = func(_ string, most source.Sharing) source.Source[any] {
		return listwatch.Open(lw, o.Example, most)
	}
	return o
}

func (i *Informer) engineOptions() engine.Options[any] {
	o := engine.Options[any]{
		Name: i.name, Describe: i.describe, Compare: i.o.Versions.Compare,
		Untrusted: i.versionsUntrusted, UnknownDeletes: i.o.Versions.IsFake,
		Indexes: indexFuncs(i.o.Indexers), Known: i.manualWrites.known, Part: i.part,
		Supervise:       supervise,
		ReportUnchanged: true, BeforeApply: i.beforeApply, Observe: i.observe,
		Share: i.sharing, Slots: i.o.Slots,
		Background: []func(context.Context){func(ctx context.Context) { i.detector.Run(ctx.Done()) }},
		Resync:     engine.ResyncRule{Period: i.startResyncs, Due: i.dueForResync, Apply: i.resync},
		StopGrace:  stuckReport, OnStuck: i.logStuck, AfterDecoding: i.afterDecoding,
		OnIndexErrors: i.reportIndexErrors, OnNotRun: i.reportNotRun, OnUndecodable: i.reportUndecodable,
	}
	if i.metrics != nil {
		o.Metrics = i.metrics
	}
	if i.o.ByDefault {
		o.Namespaces, o.NamespacesByDefault = []string{i.o.Namespace}, true
	}
	return o
}

func (i *Informer) versionsUntrusted() bool { return !i.o.Versions.Trusted() }

// describe returns the version and UID of a cached object. The version is empty if it may be
// the transform's, and for an object of the program, whose UID decides about slots alone.
func (i *Informer) describe(obj any) (version, uid string) {
	if of, ok := obj.(manual); ok {
		if i.o.Slots != nil {
			_, uid = versionAndUID(of.object)
		}
		return "", uid
	}
	version, uid = versionAndUID(obj)
	if i.ownVersions.Load() {
		version = ""
	}
	return version, uid
}

// part returns the source of the collection and the options of its reflector.
func (i *Informer) part(ctx context.Context, namespace string, _ source.Scope) engine.Part[any] {
	i.mu.Lock()
	defer i.mu.Unlock()
	src := i.o.Source
	if i.o.Open != nil {
		most := i.o.Sharing.AtMost
		if i.transform != nil { // it may write to the objects that it receives
			most = max(most, source.ShareStrings)
		}
		src = i.o.Open(namespace, most)
	}
	streams := i.o.Versions.Trusted() &&
		clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient)
	return engine.Part[any]{Source: src, Reflector: reflector.Options[any]{
		Accept: i.hasSlot, Transform: i.transform, AfterTransform: i.afterTransform,
		Transport: source.Transport{
			NoStreamedLists: !streams, WatchTimeout: max(i.o.MinWatchTimeout, minWatchTimeout),
			Recorder: i.o.Recorder,
		},
		PagesAfterFailure: true,
		Logger:            newLogger(ctx, i.reports),
		OnFailure:         i.watchErrorsTo(ctx, i.watchError),
	}}
}

// hasSlot returns an error for an object that has no slot.
func (i *Informer) hasSlot(item source.Item[any], _ bool) error {
	if i.o.Slots == nil {
		return nil
	}
	return i.o.Slots.Check(slot.NamespaceOf(item.Key))
}

// afterTransform records whether a transform has changed the version. With slots by UID, it
// returns an error if the transform has changed the UID.
func (i *Informer) afterTransform(received source.Item[any], made any) (any, error) {
	if version, _ := versionAndUID(made); version != "" && version != received.Version {
		i.ownVersions.Store(true)
	}
	if slots := i.o.Slots; slots != nil && slots.Key() == slot.UID {
		if _, uid := versionAndUID(made); uid != received.UID {
			return made, slot.ErrNoUID
		}
	}
	return made, nil
}

// sharing returns the function that shares parts of objects; nil without a sharer.
func (i *Informer) sharing() func(any) any {
	if sharer := i.sharer.Load(); sharer != nil {
		return sharer.Share
	}
	return nil
}

func (i *Informer) afterDecoding() source.SharerStats {
	if sharer := i.sharer.Load(); sharer != nil {
		return sharer.Stats()
	}
	return source.SharerStats{}
}

func (i *Informer) beforeApply(batch *delta.Batch[any]) {
	i.manualWrites.settle(batch, i.collection.Store().Snapshot())
}

func (i *Informer) observe(changes []change.Change[any]) {
	for n := range changes {
		if changes[n].Type != change.Deleted {
			i.detector.AddObject(changes[n].New)
		}
	}
}

func (i *Informer) reportIndexErrors(failures []store.IndexError) {
	for _, failed := range failures {
		if more, ok := i.indexReports.Allow(); ok {
			i.reports.report(context.Background(), failed.Err,
				"An index function failed; the object has no entry in that index",
				append([]any{"informer", i.name, "index", fmt.Sprint(failed.Index),
					"key", source.BoundText(failed.Key)}, more...)...)
		}
	}
}

func (i *Informer) reportNotRun(err error) {
	i.reports.report(context.Background(), err, "The reflector did not run", "informer", i.name)
}

func (i *Informer) logStuck(err error) {
	i.logger.Info("Warning: the informer waits for handlers that do not return",
		"informer", i.name, "error", err)
}
