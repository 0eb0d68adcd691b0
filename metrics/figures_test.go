package metrics

import (
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/shard"
)

// factory is a source of informers.
type factory struct{ informers []health.Informer }

func (f *factory) Health() []health.Informer { return f.informers }

// manager is a source of controllers and an election.
type manager struct{ health controller.ManagerHealth }

func (m *manager) Health() controller.ManagerHealth { return m.health }

// durations are some durations.
func durations() health.Durations {
	var h histogram.Histogram
	for _, d := range []time.Duration{time.Nanosecond, time.Millisecond, time.Second} {
		h.ObserveRun(3, 3*d)
	}
	return h.Durations()
}

// informerWith describes an informer with a name and handlers.
func informerWith(name string, handlers int) health.Informer {
	h := health.Informer{
		Name: name, Synced: true, Version: "12345678901234567890", Objects: 3, Batches: durations(),
		Watch: health.Watch{State: health.StateWatching, LastEvent: time.Now(), Lists: 1, Watches: 2},
		Published: health.Published{
			Name: "mine", Group: "apps", Version: "v1", Resource: "deployments",
		},
	}
	for i := range handlers {
		h.Handlers = append(h.Handlers, health.Handler{
			Name: fmt.Sprintf("handler-%d", i+1), State: health.HandlerBusy, Pending: 7,
			Calls: durations(), RunningSince: time.Now().Add(-time.Minute),
		})
	}
	return h
}

// group is a source of a group of shards.
type group struct{ health shard.Health }

func (g *group) Health() shard.Health { return g.health }

// everything has sources with each of the metrics.
func everything() []any {
	deployments := informerWith("deployments.v1.apps [in default]", 1)
	deployments.Undecodable = 1 // healthy informers have no such series
	return []any{
		&group{shard.Health{
			Lease: "ops/rollout", State: shard.Member, Owned: 86, Serving: 85, Covered: 0.75,
			Entries:   map[shard.Cover]int{shard.Covered: 767, shard.Late: 7, shard.NotReady: 6, shard.Nobody: 5},
			Remaining: 10 * time.Second, LateFor: 700 * time.Second, UncoveredFor: 20 * time.Second, Moving: 2,
			MovingFor: 3 * time.Second, Moves: shard.Moves{In: 100, Out: 14, Crashes: 1}, Failures: 4,
			Members: []shard.MemberHealth{{Live: true}, {Live: true}, {}},
		}},
		&viewed{factory{[]health.Informer{deployments}}},
		&manager{controller.ManagerHealth{
			Controllers: []controller.Health{{
				Name: "images", State: controller.StateRunning, Workers: 4,
				Queued:  controller.Bands{Changes: 1, Requeues: 2, Background: 4},
				Running: []controller.Running{{For: metav1.Duration{Duration: time.Second}}},
				Added:   20, Waits: durations(), Durations: durations(), RunningCalls: 1,
				Calls: 14, Succeeded: 5, Requeues: 4, Retries: 3, Terminal: 2, AwaitedWrites: 3,
				Lag:    durations(),
				Fights: make([]controller.Rewrite, 2), Looping: make([]controller.Rewrite, 1),
				Informers: []controller.FollowedInformer{
					{Name: "pods.v1 [in default]", Lag: durations()}, {Name: "pods.v1"},
				},
			}},
			Guard: &guard.Health{Server: "https://server", Stats: guard.Stats{
				Sent: 10, Unattributed: 1, Events: 2, Fenced: 3, Late: 4, Refused: 5, Shadowed: 6,
			}},
			Election: &election.Health{Lease: "default/images", State: election.Leading},
		}},
	}
}

// collector returns a collector of sources.
func collector(t testing.TB, o Options, sources ...any) *Collector {
	t.Helper()
	c := New(o)
	if err := c.Add(sources...); err != nil {
		t.Fatal(err)
	}
	return c
}

// gathered scrapes a collector by a registry that checks the metrics.
func gathered(t testing.TB, c prometheus.Collector) []*dto.MetricFamily {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(c); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// value returns the value of the metric with these labels, each as in "name=value"; ok is false
// if there is none.
func value(families []*dto.MetricFamily, name string, labels ...string) (v float64, ok bool) {
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != name || !matches(m, labels) {
				continue
			}
			if h := m.GetHistogram(); h != nil {
				return float64(h.GetSampleCount()), true
			}
			return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
		}
	}
	return 0, false
}

func matches(m *dto.Metric, labels []string) bool {
	found := map[string]bool{}
	for _, pair := range m.GetLabel() {
		found[pair.GetName()+"="+pair.GetValue()] = true
	}
	for _, l := range labels {
		if !found[l] {
			return false
		}
	}
	return true
}

// expect asks for the value of a metric.
func expect(t *testing.T, c *Collector, want float64, name string, labels ...string) {
	t.Helper()
	if got, ok := value(gathered(t, c), name, labels...); !ok || got != want {
		t.Errorf("%s%v is %v (there is one: %v), want %v", name, labels, got, ok, want)
	}
}

func (m *manager) Calls(string, string) []controller.Call { return nil }

func (g *group) Map() []shard.Entry { return nil }
