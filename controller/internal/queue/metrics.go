package queue

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

// metrics are the metrics of workqueue that a queue updates at each call. A nil *metrics does
// nothing.
type metrics struct {
	depths  workqueue.GaugeMetric
	adds    workqueue.CounterMetric
	latency workqueue.HistogramMetric
	work    workqueue.HistogramMetric
	retries workqueue.CounterMetric

	shown int // the depth that depths shows
}

func newMetrics(p workqueue.MetricsProvider, name string) *metrics {
	if p == nil {
		return nil
	}
	return &metrics{
		depths: p.NewDepthMetric(name), adds: p.NewAddsMetric(name),
		latency: p.NewLatencyMetric(name), work: p.NewWorkDurationMetric(name),
		retries: p.NewRetriesMetric(name),
	}
}

// depth sets the number of queued keys. Each increase counts as adds.
func (m *metrics) depth(queued [bands]int) {
	if m == nil {
		return
	}
	n := total(queued)
	for ; m.shown < n; m.shown++ {
		m.adds.Inc()
		m.depths.Inc()
	}
	for ; m.shown > n; m.shown-- {
		m.depths.Dec()
	}
}

func total(queued [bands]int) (n int) {
	for _, q := range queued {
		n += q
	}
	return n
}

func (m *metrics) started(waited time.Duration) {
	if m != nil {
		m.latency.Observe(waited.Seconds())
	}
}

func (m *metrics) ended(took time.Duration, r Result) {
	if m == nil {
		return
	}
	m.work.Observe(took.Seconds())
	if r == Retry {
		m.retries.Inc()
	}
}
