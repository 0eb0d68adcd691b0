package sharedinformer

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// metrics publishes the metrics of client-go's named informers: the length of the queue, the
// duration of a batch, and the version of the cache.
//
// client-go does not return the provider that was set for the process with
// cache.SetInformerMetricsProvider. It is reached through objects that use it: an empty store
// whose version is set, and a queue through which one item passes while a batch is applied. The
// length of our queue is published only with a provider of the informer's own.
type metrics struct {
	identifier cache.InformerNameAndResource
	queued     cache.GaugeMetric     // nil without a provider of the informer's own
	latency    cache.HistogramMetric // nil without a provider of the informer's own
	timer      cache.Queue           // nil with a provider of the informer's own
	version    cache.Store
}

func newMetrics(identifier cache.InformerNameAndResource,
	provider cache.InformerMetricsProvider) *metrics {
	if !identifier.Reserved() {
		return nil
	}
	m := &metrics{
		identifier: identifier,
		version: cache.NewStore(cache.MetaNamespaceKeyFunc,
			cache.WithStoreMetrics(identifier, provider)),
	}
	if provider == nil {
		m.timer = cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{AtomicEvents: true,
			Identifier: identifier})
		return m
	}
	m.queued = provider.NewQueuedItemMetric(identifier)
	m.latency = provider.NewProcessingLatencyMetric(identifier)
	return m
}

// timedItem passes through the timer.
var timedItem = &metav1.ObjectMeta{Name: "batch"}

// Batch applies a batch and publishes the duration.
func (m *metrics) Batch(apply func()) {
	switch {
	case !m.identifier.Reserved():
		apply()
	case m.latency != nil:
		began := time.Now()
		apply()
		m.latency.Observe(time.Since(began).Seconds())
	default:
		// Neither call can fail: the item has a key, and the queue is open and not empty.
		_ = m.timer.Add(timedItem)
		_, _ = m.timer.Pop(func(any, bool) error {
			apply()
			return nil
		})
	}
}

// Reached publishes the length of the queue and the version of the cache.
func (m *metrics) Reached(queued int, version string) {
	if !m.identifier.Reserved() {
		return
	}
	m.version.Bookmark(version)
	if m.queued != nil {
		m.queued.Set(float64(queued))
	}
}
