package engine

import (
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
)

// HandlerHealth describes the handler of a subscription.
func HandlerHealth(s Subscription) health.Handler {
	stats := s.Stats()
	h := health.Handler{
		Name: s.Name(), State: health.HandlerIdle, Synced: s.HasSynced(),
		Pending: stats.Pending, Delivered: stats.Delivered, Folded: stats.Folded,
		LeftOut: stats.LeftOut, Panics: stats.Panics, Calls: stats.Calls, Unseen: stats.Unseen,
		Running: stats.Key, RunningSince: stats.Since,
	}
	switch {
	case isClosed(s.Done()):
		h.State = health.HandlerRemoved
	case stats.Unseen > 0:
		h.State = health.HandlerStuck
	case stats.Behind:
		h.State = health.HandlerBehind
	case stats.Pending > 0 || !stats.Since.IsZero():
		h.State = health.HandlerBusy
	}
	return h
}

// Health describes the collection.
func (c *Collection[T]) Health() health.Informer {
	snapshot := c.store.Snapshot()
	h := health.Informer{
		Name: c.Name(), Synced: c.HasSynced(), Objects: snapshot.Len(), Version: snapshot.Version(),
		Declares: c.o.Declares, Queued: c.queue.Len(), Stale: c.queue.Stale(),
		Batches: c.batches.Durations(),
	}
	for _, s := range c.log.Subscriptions() {
		h.Handlers = append(h.Handlers, HandlerHealth(s))
	}
	h.IndexErrors, h.LastIndexError = c.store.IndexErrors(), c.indexErrs.lastError()
	c.parts.mu.Lock()
	list, removed := c.parts.list, c.parts.removed
	c.parts.mu.Unlock()
	if len(list) == 1 {
		h.Watch = c.watchHealth(list[0])
		h.Decoding = list[0].decoded()
	} else {
		h.Namespaces = make(map[string]health.Watch, len(list))
		for _, p := range list {
			watch := c.watchHealth(p)
			h.Namespaces[p.namespace] = watch
			h.Watch.Add(watch)
			h.Decoding.Add(p.decoded())
		}
	}
	h.AddCounters(removed.Watch)
	h.Decoding.Add(removed.decoding)
	if c.o.AfterDecoding != nil {
		h.Decoding.After.Add(c.o.AfterDecoding())
	}
	if c.stopped.Load() {
		h.State = health.StateStopped
	}
	return h
}

// watchHealth describes the list and watch of a part.
func (c *Collection[T]) watchHealth(p *part[T]) health.Watch {
	h := p.health()
	var first delta.Unusable
	if h.Undecodable, first = c.queue.Unusable(p.prefix); h.Undecodable > 0 {
		h.LastDropped, h.LastDroppedAt = first.Err, time.Time{}
	}
	return h
}
