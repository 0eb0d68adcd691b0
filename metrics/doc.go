// Package metrics exports metrics to Prometheus. A [Collector] turns the health of factories,
// informers, controllers, guards, elections and groups of shards into metrics at each scrape.
//
//	factories ────────────────────┐
//	informers without a factory ──┤ Health             ┌─▶ tidings_…
//	controllers, managers ────────┼────────▶ Collector ┼─▶ controller_runtime_…, workqueue_…
//	guards, electors, groups ─────┘            ▲       └─▶ informer_…
//	                                         scrape
//
//	collector := metrics.New(metrics.Options{})
//	err := collector.Add(factory, manager)
//	prometheus.MustRegister(collector)
//
// docs/metrics-reference.md has every metric.
//
// # Names
//
// The label informer is the name of the informer up to its selection, so that it has no
// namespace; Options.Selections keeps the selection. If two sources have one name, the second one
// has a number: "pods.v1#2". Labels never contain keys of objects or identities of members.
//
// # Histograms
//
// Durations are counted by powers of two of a second. The histograms of handlers, and of the
// batches of informers, are native histograms. In the text format, and for a Prometheus that does
// not read native histograms, they have a count and a sum only. Those of controllers also have
// buckets.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. A scrape calls Health of each source, which does
// not wait for informers, handlers or calls.
//
// # Memory
//
// A collector keeps its sources, and an estimate of the memory of each informer of the last scrape.
// An informer that was released from its factory has no metrics at the next scrape. An informer
// without a factory leaves the collector when it has stopped, and a group when it was left.
package metrics
