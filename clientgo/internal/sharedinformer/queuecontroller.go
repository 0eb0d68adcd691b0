package sharedinformer

import (
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
	"github.com/tidings-go/tidings/source"
)

// QueueController fills a queue of the program's own with what is listed and watched,
// and has the program's function process what it yields. The reflector is ours; order
// and memory of what is pending are the queue's.
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
	q := &QueueController{config: *c, name: c.ObjectDescription}
	if q.name == "" {
		q.name = describeType(c.ObjectType)
	}
	return q
}

// Run is RunWithContext with a channel that ends it.
func (q *QueueController) Run(stopCh <-chan struct{}) {
	q.RunWithContext(wait.ContextForChannel(stopCh))
}

// RunWithContext lists and watches and processes until ctx ends, and waits for all that
// it has started. It runs once. A panic of the Process function that utilruntime was told
// to survive costs what it was about; the next is processed after a pause.
func (q *QueueController) RunWithContext(ctx context.Context) {
	defer utilruntime.HandleCrashWithContext(ctx)
	if err := q.start(); err != nil {
		q.reports.report(ctx, err, "A controller was not run", "type", q.name)
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
		q.reports.report(ctx, err, "The reflector did not run", "type", q.name)
	}
}

func (q *QueueController) newReflector(ctx context.Context) *reflector.Reflector[tagged] {
	src, versions := listwatch.New(q.config.ListerWatcher, q.config.ObjectType, q.reports.dropped)
	handler := q.config.WatchErrorHandlerWithContext
	if old := q.config.WatchErrorHandler; old != nil {
		handler = func(_ context.Context, r *cache.Reflector, err error) { old(r, err) }
	}
	return reflector.New(taggedSource{src}, reflectorQueue{ctx, &q.reports, q.config.Queue}, reflector.Options[tagged]{
		Name: q.name, Compare: versions.Compare,
		Transport: source.Transport{
			PageSize:        max(q.config.WatchListPageSize, 0),
			NoStreamedLists: !versions.Trusted() || !clientfeatures.FeatureGates().Enabled(clientfeatures.WatchListClient),
			WatchTimeout:    max(q.config.MinWatchTimeout, minWatchTimeout),
		},
		PagesAfterFailure: true,
		Logger:            newLogger(ctx, &q.reports),
		OnFailure:         WatchErrors(ctx, q.name, q.config.ObjectType, q.LastSyncResourceVersion, handler),
	})
}

// resync has the queue resync once per period.
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
			q.reports.report(ctx, err, "A queue did not resync", "type", q.name)
		}
	}
}

// process has everything that the queue yields processed until it is closed.
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
			q.reports.report(ctx, err, "What a queue yielded was not processed", "type", q.name)
		}
	}
}

// HasSynced reports whether the queue has yielded its first list.
func (q *QueueController) HasSynced() bool { return q.config.Queue.HasSynced() }

// HasSyncedChecker is done when HasSynced is true.
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
