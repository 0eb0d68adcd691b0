package sharedinformer

import (
	"context"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Health says how the informer and its handlers are. Programs reach it through the
// interface that has this one method.
func (i *Informer) Health() tidings.Health {
	i.mu.Lock()
	handlers := make([]tidings.HandlerHealth, len(i.handlers))
	for n, r := range i.handlers {
		handlers[n] = engine.HandlerHealth(r.subscription)
	}
	r, stopped, from, sharer := i.reflector, i.stopped, i.o.Source, i.sharer
	i.mu.Unlock()

	h := tidings.Health{Watch: health.Watch{State: health.Pending}}
	if r != nil {
		h.Watch = r.Health()
	}
	if stopped {
		h.State = health.Stopped
	}
	snapshot := i.store.Snapshot()
	h.Name, h.Synced, h.Handlers = i.name, i.HasSynced(), handlers
	h.Objects, h.Version = snapshot.Len(), snapshot.Version()
	h.Queued, h.Stale, h.IndexErrors = i.queue.Len(), i.queue.Stale(), i.store.IndexErrors()
	if of, ok := from.(interface{ DecodingStats() source.DecodingStats }); ok {
		h.Decoding = of.DecodingStats()
	}
	if sharer != nil {
		h.Decoding.After = sharer.Stats()
	}
	if failed := i.lastIndexError.Load(); failed != nil {
		h.LastIndexError = *failed
	}
	return h
}

// indexReport is how often the failures of index functions are reported: a report takes
// a millisecond, and a list may bring thousands. Health counts all of them.
const indexReport = time.Minute

// indexFailed takes note of an object that an index function failed for.
func (i *Informer) indexFailed(err store.IndexError) {
	i.lastIndexError.Store(&err)
	now := time.Now().UnixNano()
	if last := i.indexReported.Load(); last != 0 && now-last < int64(indexReport) || !i.indexReported.CompareAndSwap(last, now) {
		return
	}
	i.reports.report(context.Background(), err.Err, "An index function failed; the object has no entry in that index",
		"type", i.name, "index", err.Index, "key", source.BoundText(err.Key))
}
