package metrics

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
)

// fleet returns a factory of 1,000 informers with 5 handlers each.
func fleet(b *testing.B) *tidings.Factory {
	f, err := tidings.NewFactory(&rest.Config{Host: "http://localhost"}, tidings.FactoryOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 1000 {
		pods, err := tidings.For[*corev1.Pod](f, tidings.Selection{Namespace: fmt.Sprint("ns-", i)})
		if err != nil {
			b.Fatal(err)
		}
		for range 5 {
			_, err := pods.AddHandler(tidings.HandlerFunc[*corev1.Pod](
				func(tidings.Event[*corev1.Pod]) {}), tidings.HandlerOptions{})
			if err != nil {
				b.Fatal(err)
			}
		}
	}
	return f
}

// BenchmarkCollect is the collector's part of a scrape.
func BenchmarkCollect(b *testing.B) {
	c := collector(b, Options{}, fleet(b))
	out := make(chan prometheus.Metric, 1000)
	go func() {
		for range out {
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		c.Collect(out)
	}
	close(out)
}

// BenchmarkGather adds the registry's part, which checks and sorts the metrics.
func BenchmarkGather(b *testing.B) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector(b, Options{}, fleet(b)))
	for b.Loop() {
		if _, err := registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}
