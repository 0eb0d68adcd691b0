package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// provider makes metrics that add up the values that they receive.
type provider struct {
	depth, adds, retries, latency, work sum
}

type sum float64

func (s *sum) Inc()              { *s++ }
func (s *sum) Dec()              { *s-- }
func (s *sum) Set(v float64)     { *s = sum(v) }
func (s *sum) Observe(v float64) { *s += sum(v) }

func (p *provider) NewDepthMetric(string) workqueue.GaugeMetric            { return &p.depth }
func (p *provider) NewAddsMetric(string) workqueue.CounterMetric           { return &p.adds }
func (p *provider) NewLatencyMetric(string) workqueue.HistogramMetric      { return &p.latency }
func (p *provider) NewWorkDurationMetric(string) workqueue.HistogramMetric { return &p.work }
func (p *provider) NewRetriesMetric(string) workqueue.CounterMetric        { return &p.retries }
func (p *provider) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return new(sum)
}

func (p *provider) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return new(sum)
}

// TestMetrics feeds a provider of workqueue.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &provider{}
		q := New(Options[int]{Name: "rollout", Metrics: p, FirstDelay: time.Hour})
		q.Add("a", Ask[int]{})
		q.Add("b", Ask[int]{})
		q.Add("b", Ask[int]{}) // the same run
		time.Sleep(2 * time.Second)
		item, _ := q.Get(0, nil)
		time.Sleep(3 * time.Second)
		if err := q.Done(item, Outcome{Result: Retry}); err != nil {
			t.Fatal(err)
		}
		if want := (provider{depth: 1, adds: 2, retries: 1, latency: 2, work: 3}); *p != want {
			t.Errorf("got %+v, want %+v", *p, want)
		}
		q.Close()
	})
}
