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

	shown    int             // the depth that depths shows
	panicked func(value any) // nil lets panics go on
	broken   bool            // one has panicked
}

// newMetrics returns nil without a provider, or if it panics.
func newMetrics(p workqueue.MetricsProvider, name string, panicked func(value any)) (m *metrics) {
	if p == nil {
		return nil
	}
	made := &metrics{panicked: panicked}
	defer made.recovered()
	made.depths, made.adds = p.NewDepthMetric(name), p.NewAddsMetric(name)
	made.latency, made.work = p.NewLatencyMetric(name), p.NewWorkDurationMetric(name)
	made.retries = p.NewRetriesMetric(name)
	return made
}

// recovered is deferred for the panic of a metric: from then on there are none.
func (m *metrics) recovered() {
	if m.panicked == nil {
		return
	}
	if value := recover(); value != nil {
		m.broken = true
		m.panicked(value)
	}
}

// depth sets the number of queued keys. Each increase counts as adds.
func (m *metrics) depth(queued [bands]int) {
	if m == nil || m.broken {
		return
	}
	defer m.recovered()
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
	if m == nil || m.broken {
		return
	}
	defer m.recovered()
	m.latency.Observe(waited.Seconds())
}

func (m *metrics) ended(took time.Duration, r Result) {
	if m == nil || m.broken {
		return
	}
	defer m.recovered()
	m.work.Observe(took.Seconds())
	if r == Retry {
		m.retries.Inc()
	}
}
