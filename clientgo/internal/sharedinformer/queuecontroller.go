package sharedinformer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/internal/reflector"
)

// QueueController lists and watches into a queue of the program's own, and calls the
// program's function with the items of that queue. The queue decides their order and keeps
// them in memory.
type QueueController struct {
	config  cache.Config
	name    string
	reports reporter

	mu        sync.Mutex // guards the rest
	started   bool
	reflector *reflector.Reflector[tagged]
}

// NewQueueController returns a controller for a configuration, which is copied.
func NewQueueController(c *cache.Config) *QueueController {
	return &QueueController{config: *c, name: cmp.Or(c.ObjectDescription, describeType(c.ObjectType))}
}

// Run is RunWithContext with a channel that ends it.
func (q *QueueController) Run(stopCh <-chan struct{}) {
	q.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext lists, watches and processes until ctx ends. When it returns, its goroutines
// have ended. It runs once. If utilruntime does not crash after a panic of the Process
// function, that item is lost, and the next one is processed after a pause.
func (q *QueueController) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if err := q.start(); err != nil {
		q.reports.report(ctx, err, "A controller was not run", "informer", q.name)
		return
	}
	var running sync.WaitGroup
	running.Go(func() { supervise(ctx, q.listAndWatch) })
	running.Go(func() { q.resync(ctx) })
	running.Go(func() {
		<-ctx.Done()
		q.config.Queue.Close()
	})
	supervise(ctx, q.process)
	running.Wait()
	q.reports.wait()
}

func (q *QueueController) start() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.started {
		return errors.New("it was run before, and runs once")
	}
	q.started = true
	return nil
}

// listAndWatch runs a reflector.
func (q *QueueController) listAndWatch(ctx context.Context) {
	r := q.newReflector(ctx)
	q.mu.Lock()
	q.reflector = r
	q.mu.Unlock()
	if err := r.Run(ctx); err != nil {
		q.reports.report(ctx, err, "The reflector did not run", "informer", q.name)
	}
}

func (q *QueueController) newReflector(ctx context.Context) *reflector.Reflector[tagged] {
	src, versions := listwatch.New(q.config.ListerWatcher, listwatch.Options{
		Example: q.config.ObjectType, Report: q.reports.dropped,
	})
	handler := q.config.WatchErrorHandlerWithContext
	if old := q.config.WatchErrorHandler; old != nil {
		handler = withoutContext(old)
	}
	return reflector.New(listwatch.Convert[any](src, tag),
		reflectorQueue{ctx, &q.reports, q.config.Queue}, reflector.Options[tagged]{
			Name: q.name, Compare: versions.Compare,
			Transport:         transport(versions, q.config.WatchListPageSize, q.config.MinWatchTimeout),
			PagesAfterFailure: true,
			Logger:            newLogger(ctx, &q.reports),
			OnFailure: watchErrorsTo(ctx, handler, q.name, q.config.ObjectType,
				q.LastSyncResourceVersion),
		})
}

// resync resyncs the queue once per period.
func (q *QueueController) resync(ctx context.Context) {
	if q.config.FullResyncPeriod <= 0 {
		return
	}
	ticker := time.NewTicker(q.config.FullResyncPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if q.config.ShouldResync != nil && !q.config.ShouldResync() {
			continue
		}
		if err := q.config.Queue.Resync(); err != nil {
			q.reports.report(ctx, err, "A queue did not resync", "informer", q.name)
		}
	}
}

// process takes items from the queue and calls the Process function with them, until the queue
// is closed.
func (q *QueueController) process(ctx context.Context) {
	next := func() error {
		_, err := q.config.Queue.Pop(cache.PopProcessFunc(q.config.Process))
		return err
	}
	batches, ok := q.config.Queue.(cache.QueueWithBatch)
	if ok && q.config.ProcessBatch != nil && clientfeatures.FeatureGates().Enabled(clientfeatures.InOrderInformersBatchProcess) {
		next = func() error {
			return batches.PopBatch(q.config.ProcessBatch, cache.PopProcessFunc(q.config.Process))
		}
	}
	for ctx.Err() == nil {
		err := next()
		if errors.Is(err, cache.ErrFIFOClosed) {
			return
		}
		if err != nil {
			q.reports.report(ctx, err, "An item of a queue was not processed", "informer", q.name)
		}
	}
}

// HasSynced reports whether the queue has yielded its first list.
func (q *QueueController) HasSynced() bool { return q.config.Queue.HasSynced() }

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (q *QueueController) HasSyncedChecker() cache.DoneChecker {
	return q.config.Queue.HasSyncedChecker()
}

// LastSyncResourceVersion returns the version up to which everything was read.
func (q *QueueController) LastSyncResourceVersion() string {
	q.mu.Lock()
	r := q.reflector
	q.mu.Unlock()
	if r == nil {
		return ""
	}
	return r.Health().Version
}
