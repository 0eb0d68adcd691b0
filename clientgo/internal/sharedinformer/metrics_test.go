package sharedinformer

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

// gauge is a provider of metrics. All its metrics are one gauge.
type gauge struct{ value float64 }

func (g *gauge) Set(value float64) { g.value = value }
func (g *gauge) Observe(float64)   {}

func (g *gauge) NewQueuedItemMetric(cache.InformerNameAndResource) cache.GaugeMetric { return g }

func (g *gauge) NewProcessingLatencyMetric(cache.InformerNameAndResource) cache.HistogramMetric {
	return g
}

func (*gauge) NewStoreResourceVersionMetric(cache.InformerNameAndResource) cache.GaugeMetric {
	return &gauge{}
}

func TestQueueLengthIsPublishedUnderTheName(t *testing.T) {
	name, err := cache.NewInformerName("metrics")
	if err != nil {
		t.Fatal(err)
	}
	var queued gauge
	m := newMetrics(name.WithResource(corev1.SchemeGroupVersion.WithResource("pods")), &queued)
	m.Reached(3, "7")
	name.Release()
	m.Reached(5, "8")
	if queued.value != 3 {
		t.Errorf("the length of the queue is published as %v, want the one before the release", queued.value)
	}
}
