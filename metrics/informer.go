package metrics

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// informerFamilies are the metrics of informers and of their handlers. An informer has at most 12
// series: a further figure takes the place of another one, or is sent only while it is not 0, as
// undecodable is.
type informerFamilies struct {
	state, synced, objects, queued, age, failures *family
	lists, objectErrors, batches, memory          *family
	undecodable                                   *family

	pending, running, panics, calls *family
}

func newInformerFamilies(f *families) informerFamilies {
	const informer, handler = "informer", "handler"
	return informerFamilies{
		state: f.gauge("tidings_informer_state", "1 for the state of the informer: Pending, "+
			"Listing, Watching, Backoff, Forbidden, NoSuchResource, Silent or Stopped. "+
			"Healthy: Watching.", informer, "state"),
		synced: f.gauge("tidings_informer_synced",
			"1 if the cache holds the first complete list, otherwise 0. Healthy: 1.", informer),
		objects: f.gauge("tidings_informer_objects", "Objects in the cache.", informer),
		queued: f.gauge("tidings_informer_queued_changes",
			"Changes that were read and are not in the cache yet. Healthy: near 0.", informer),
		age: f.gauge("tidings_informer_last_event_age_seconds",
			"Time since the last event, bookmark or list came, by the clock of the process; with "+
				"several namespaces, the longest one. Healthy: about a minute at most, "+
				"as servers send bookmarks.", informer),
		failures: f.gauge("tidings_informer_failures",
			"Failures of list and watch since the last success. Healthy: 0.", informer),
		lists: f.counter("tidings_informer_lists_total",
			"Lists that were begun. A list in pages is one. Healthy: hardly growing.", informer),
		objectErrors: f.counter("tidings_informer_object_errors_total",
			"Objects that do not belong to the collection, that the transform failed for, "+
				"or that an index function failed for. Healthy: not growing.", informer),
		undecodable: f.gauge("tidings_informer_undecodable_objects",
			"Objects whose present state cannot be decoded: the cache has their last decoded "+
				"state, or none. Healthy: no series.", informer),
		memory: f.gauge("tidings_informer_memory_bytes",
			"Estimate of what the cache takes: objects, keys and indexes. Each scrape measures "+
				"ten more informers. What several informers share counts for each of them.", informer),
		batches: f.histogram("tidings_informer_batch_duration_seconds",
			"Time to apply a batch of changes to the cache and its indexes.", informer),

		pending: f.gauge("tidings_handler_pending_notifications",
			"Notifications that wait for the handler. Healthy: falling back to 0.",
			handler, informer),
		running: f.gauge("tidings_handler_running_seconds",
			"How long the running call of the handler has taken, 0 between calls.",
			handler, informer),
		panics: f.counter("tidings_handler_panics_total",
			"Calls of the handler that panicked. Healthy: 0.", handler, informer),
		calls: f.histogram("tidings_handler_call_duration_seconds",
			"Time of calls of the handler.", handler, informer),
	}
}

// nameOf returns the name of an informer as labels have it.
func (c *Collector) nameOf(informer string) string {
	if !c.o.Selections {
		informer, _, _ = strings.Cut(informer, " [")
	}
	return informer
}

// informer sends the metrics of an informer, except its memory, and of its handlers. It keeps the
// view of the informer, if there is one.
func (s *scrape) informer(i gather.Informer) {
	name, h := i.Name, i.Health
	if i.View != nil {
		s.views[name] = i.View
	}
	f, l := &s.informers, labels{}.label("informer", name)
	s.send(f.state, l.label("state", string(h.State)), 1)
	s.send(f.synced, l, oneIf(h.Synced))
	s.send(f.objects, l, float64(h.Objects))
	s.send(f.queued, l, float64(h.Queued))
	if !h.LastEvent.IsZero() && h.State != health.StateStopped {
		s.send(f.age, l, time.Since(h.LastEvent).Seconds())
	}
	s.send(f.failures, l, float64(h.Failures))
	s.send(f.lists, l, float64(h.Lists))
	s.send(f.objectErrors, l, float64(h.Dropped+h.TransformErrors+h.IndexErrors))
	if h.Undecodable > 0 {
		s.send(f.undecodable, l, float64(h.Undecodable))
	}
	s.sendDurations(f.batches, l, h.Batches)
	handlers := inspect.Names{}
	for _, handler := range h.Handlers {
		if handler.State == health.HandlerRemoved {
			continue
		}
		s.handler(handler,
			labels{}.label("handler", handlers.Distinct(handler.Name)).label("informer", name))
	}
	if s.o.ClientGo {
		s.clientGoNames(h)
	}
}

func (s *scrape) handler(h health.Handler, l labels) {
	f := &s.informers
	s.send(f.pending, l, float64(h.Pending))
	var running time.Duration
	if !h.RunningSince.IsZero() {
		running = max(time.Since(h.RunningSince), 0)
	}
	s.send(f.running, l, running.Seconds())
	s.send(f.panics, l, float64(h.Panics))
	s.sendDurations(f.calls, l, h.Calls)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// clientGoFamilies are the metrics of informers under the names of client-go's.
type clientGoFamilies struct{ queued, latency, version *family }

func newClientGoFamilies(f *families) clientGoFamilies {
	labels := []string{"group", "name", "resource", "version"}
	return clientGoFamilies{
		queued: f.gauge("informer_queued_items",
			"Changes that were read and are not in the cache yet.", labels...),
		latency: f.classic("informer_processing_latency_seconds",
			"Time to apply a batch of changes to the cache and its indexes.", labels...),
		version: f.gauge("informer_store_resource_version",
			"The last 15 digits of the resource version that the cache reflects.", labels...),
	}
}

// clientGoNames sends the metrics of a drop-in informer with a name, unless another informer with
// the same name was first.
func (s *scrape) clientGoNames(h health.Informer) {
	p, f := h.Published, &s.clientGo
	if p.Name == "" || s.published[p] {
		return
	}
	s.published[p] = true
	l := labels{}.label("group", p.Group).label("name", p.Name).
		label("resource", p.Resource).label("version", p.Version)
	s.send(f.queued, l, float64(h.Queued))
	s.sendDurations(f.latency, l, h.Batches)
	if version, ok := lastDigits(h.Version); ok {
		s.send(f.version, l, version)
	}
}

// lastDigits returns the last 15 digits of a resource version, which a float64 holds exactly. ok is
// false for a version that is no number.
func lastDigits(version string) (value float64, ok bool) {
	n, err := strconv.ParseUint(version[max(len(version)-15, 0):], 10, 64)
	if err != nil {
		return math.NaN(), false
	}
	return float64(n), true
}
