package sharedinformer

import (
	"context"
	"reflect"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/delta"
	"github.com/tidings-go/tidings/internal/reflector"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// stuckReport is how often handlers that hold up the end of Run are named.
const stuckReport = 10 * time.Second

// minWatchTimeout is the least time that client-go asks a watch to last, which API
// servers are dimensioned for.
const minWatchTimeout = 5 * time.Minute

// RunWithContext lists and watches until ctx ends. When it returns, every goroutine of
// the informer has ended, those of the handlers last; a handler that does not return
// holds it up and is named in the log. A second call logs a warning and returns.
func (i *Informer) RunWithContext(ctx context.Context) {
	logger := klog.FromContext(ctx)
	if i.o.Logger != nil {
		logger = *i.o.Logger
		ctx = klog.NewContext(ctx, logger)
	}
	resyncs, ok := i.start(ctx, logger)
	if !ok {
		logger.Info("Warning: the informer was run before; it runs once", "type", i.name)
		return
	}
	var clock, processor sync.WaitGroup
	detected := make(chan struct{})
	if resyncs > 0 { // without, no handler has any
		clock.Go(func() { i.keepResyncTime(ctx, resyncs) })
	}
	processor.Go(func() { i.detector.Run(detected) })
	processor.Go(func() { i.process(ctx) })
	follow(ctx, i.name, i.reports, i.reflector, i.renewReflector)

	<-ctx.Done()
	clock.Wait()
	i.queue.Close()
	close(detected)
	processor.Wait()
	i.stopHandlers(logger)
	i.reports.wait()
}

// start takes the one right to run and prepares what runs. It returns the period of
// the resync clock.
func (i *Informer) start(ctx context.Context, logger klog.Logger) (resyncs time.Duration, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.started {
		return 0, false
	}
	i.started = true
	if i.transform != nil || i.o.Unshared == nil {
		i.sharer = i.o.Sharing.Sharer()
	}
	if i.transform != nil && i.o.Unshared != nil {
		i.o.Source = i.o.Unshared
	}
	i.o.Unshared = nil
	i.reflector = i.newReflector(ctx)
	i.fan.Start()
	return i.resyncCheck, true
}

// newReflector returns a reflector of what was set before Run.
func (i *Informer) newReflector(ctx context.Context) *reflector.Reflector[any] {
	return reflector.New(i.o.Source, i.queue, reflector.Options[any]{
		Name: i.name, Transform: i.transform, AfterTransform: i.afterTransform, Known: i.known, Compare: i.compare,
		PageSize:          max(i.o.PageSize, 0), // as of client-go, which takes less for its default
		NoStreamedLists:   i.o.NoStreamedLists || !clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient),
		PagesAfterFailure: true,
		WatchTimeout:      max(i.o.MinWatchTimeout, minWatchTimeout),
		Logger:            newLogger(ctx, i.reports),
		OnFailure:         WatchErrors(ctx, i.name, i.o.Example, i.LastSyncResourceVersion, i.watchError),
	})
}

// renewReflector replaces the reflector.
func (i *Informer) renewReflector(ctx context.Context) *reflector.Reflector[any] {
	r := i.newReflector(ctx)
	i.mu.Lock()
	defer i.mu.Unlock()
	i.reflector = r
	return r
}

// afterTransform looks at what is about to be cached for a version of its own, and returns
// it sharing what it has in common with others. That comes after the program's transform,
// which owns the object that it is given.
func (i *Informer) afterTransform(received source.Item[any], made any) (any, error) {
	if version, _ := describe(made); version != "" && version != received.Version {
		i.ownVersions.Store(true)
	}
	if i.sharer == nil {
		return made, nil
	}
	return i.sharer.Share(made), nil
}

// describe returns the version and UID of a cached object, as far as they are the server's.
func (i *Informer) describe(obj any) (version, uid string) {
	version, uid = describe(obj)
	if i.ownVersions.Load() {
		version = ""
	}
	return version, uid
}

// known returns the cached object of a key. While versions are not trusted it has
// none, so that what is listed is never taken for what is cached.
func (i *Informer) known(key string) (obj any, version, uid string, ok bool) {
	if obj, ok = i.store.Get(key); ok && i.versionsTrusted() {
		version, uid = i.describe(obj)
	}
	return obj, version, uid, ok
}

// process applies what the queue brings until that is closed or ctx ends.
func (i *Informer) process(ctx context.Context) {
	timed := func(batch delta.Batch[any]) { i.metrics.time(func() { i.apply(batch) }) }
	for i.queue.Pop(ctx, timed) == nil {
		i.metrics.reached(i.queue.Len(), i.store.Snapshot().Version())
	}
}

// apply puts a batch into the cache and tells the handlers.
func (i *Informer) apply(batch delta.Batch[any]) {
	i.writing.Lock()
	defer i.writing.Unlock()
	i.takenOut.settle(&batch, i.store.Snapshot())
	i.store.Update(func(b *store.Batch[any]) {
		for n := range batch.Changes {
			d := &batch.Changes[n]
			if d.Type == change.Deleted {
				b.Delete(d.Key)
			} else {
				b.Set(d.Key, d.New)
				i.detector.AddObject(d.New)
			}
		}
		for _, mark := range batch.Marks {
			b.SetVersion(mark.Version)
		}
	})
	if len(batch.Changes) > 0 {
		i.fan.Publish(batch.Changes, i.store.Len())
	}
	if batch.Synced {
		i.fan.MarkSynced()
		close(i.synced)
	}
	for _, token := range batch.Resync {
		i.resync(token)
	}
	if batch.Replaced {
		select {
		case i.listed <- struct{}{}:
		default:
		}
	}
}

// stopHandlers drops what is pending and waits for the calls that are running.
func (i *Informer) stopHandlers(logger klog.Logger) {
	i.mu.Lock()
	i.stopped = true
	i.mu.Unlock()
	i.fan.Close()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), stuckReport)
		err := i.fan.Wait(ctx)
		cancel()
		if err == nil {
			return
		}
		logger.Info("Warning: the informer waits for handlers that do not return", "type", i.name, "err", err)
	}
}

// describeType names the type of an example, with its kind if the type does not say it.
func describeType(example runtime.Object) string {
	if example == nil {
		return "<unspecified>"
	}
	switch o := example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if gvk := o.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
			return gvk.String()
		}
	}
	return reflect.TypeOf(example).String()
}
