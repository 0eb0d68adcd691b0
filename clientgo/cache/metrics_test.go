package cache_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/cache"
)

var podsResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// provider is an InformerMetricsProvider that keeps the last value of each gauge and
// counts the observations of each histogram.
type provider struct {
	mu       sync.Mutex // guards the rest
	gauges   map[string]float64
	observed map[string]int
}

func newProvider() *provider {
	return &provider{gauges: map[string]float64{}, observed: map[string]int{}}
}

// metric is one of its metrics.
type metric struct {
	p    *provider
	name string
}

func (p *provider) metric(what string, id clientgo.InformerNameAndResource) metric {
	return metric{p, fmt.Sprintf("%s of %s %s", what, id.Name(), id.GroupVersionResource().Resource)}
}

func (m metric) Set(value float64) {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	m.p.gauges[m.name] = value
}

func (m metric) Observe(value float64) {
	m.p.mu.Lock()
	defer m.p.mu.Unlock()
	if value >= 0 {
		m.p.observed[m.name]++
	}
}

func (p *provider) NewQueuedItemMetric(id clientgo.InformerNameAndResource) clientgo.GaugeMetric {
	return p.metric("queued", id)
}

func (p *provider) NewProcessingLatencyMetric(id clientgo.InformerNameAndResource) clientgo.HistogramMetric {
	return p.metric("latency", id)
}

func (p *provider) NewStoreResourceVersionMetric(id clientgo.InformerNameAndResource) clientgo.GaugeMetric {
	return p.metric("version", id)
}

// look returns the values of an informer.
func (p *provider) look(name string) (queued float64, observed int, version float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gauges["queued of "+name+" pods"], p.observed["latency of "+name+" pods"], p.gauges["version of "+name+" pods"]
}

// named returns an identifier with a name of the test's own.
func named(t *testing.T, name string) (*clientgo.InformerName, clientgo.InformerNameAndResource) {
	t.Helper()
	informerName, err := cache.NewInformerName(name)
	must(t, err)
	t.Cleanup(informerName.Release)
	return informerName, informerName.WithResource(podsResource)
}

// TestMetrics: an informer with a name sets the metrics of its provider: the time of
// processing, the version of the cache, and a queue that is empty in the end.
func TestMetrics(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		p := newProvider()
		_, id := named(t, "mine")
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Identifier: id, InformerMetricsProvider: p})
		runSynced(t, informer)
		_, before, version := p.look("mine")
		if before == 0 || version != 1 {
			t.Errorf("after the list, %d batches were observed and the version is %v, want some and 1", before, version)
		}
		source.Add(newPod("b"))
		synctest.Wait()
		queued, after, version := p.look("mine")
		same(t, "the number of queued items", queued, 0)
		if after <= before || version != 2 {
			t.Errorf("after an event, %d batches were observed and the version is %v, want more than %d, and 2", after, version, before)
		}
	})
}

// TestMetricsNewInformer: the same of an informer with one handler.
func TestMetricsNewInformer(t *testing.T) {
	bothDedicated(t, func(t *testing.T, newInformer newDedicatedFunc) {
		p := newProvider()
		_, id := named(t, "mine")
		_, controller := newInformer(clientgo.InformerOptions{ListerWatcher: newSource(t, "a"), ObjectType: &corev1.Pod{}, Handler: &recorder{},
			Identifier: id, InformerMetricsProvider: p})
		runSynced(t, controller)
		if _, observed, version := p.look("mine"); observed == 0 || version != 1 {
			t.Errorf("%d batches were observed and the version is %v, want some and 1", observed, version)
		}
	})
}

// TestMetricsWithoutName: an informer without a name publishes nothing, and neither does one
// whose name and resource another informer has already.
func TestMetricsWithoutName(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		p := newProvider()
		name, first := named(t, "mine")
		second := name.WithResource(podsResource)
		if !first.Reserved() || second.Reserved() {
			t.Errorf("the first identifier is reserved: %v, the second: %v; want the first one only", first.Reserved(), second.Reserved())
		}
		for _, id := range []clientgo.InformerNameAndResource{{}, second} {
			informer := newInformer(newSource(t, "a"), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Identifier: id, InformerMetricsProvider: p})
			runSynced(t, informer)
		}
		if len(p.gauges)+len(p.observed) > 0 {
			t.Errorf("the provider received %v and %v", p.gauges, p.observed)
		}
	})
}

// TestMetricsReleased: after a name is released, its informer goes on without publishing metrics,
// and another informer may have the name.
func TestMetricsReleased(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		old, current := newProvider(), newProvider()
		name, id := named(t, "mine")
		source := newSource(t, "a")
		informer := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Identifier: id, InformerMetricsProvider: respecting{old}})
		runSynced(t, informer)
		if _, err := cache.NewInformerName("mine"); err == nil {
			t.Error("the name was given twice")
		}
		name.Release()
		_, id = named(t, "mine")
		other := newInformer(source, &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Identifier: id, InformerMetricsProvider: respecting{current}})
		runSynced(t, other)
		source.Add(newPod("b"))
		synctest.Wait()
		if _, _, version := old.look("mine"); version != 1 {
			t.Errorf("the informer without its name published the version %v", version)
		}
		if _, _, version := current.look("mine"); version != 2 {
			t.Errorf("the informer with the name published the version %v, want 2", version)
		}
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, "default/a", "default/b")
	})
}

// respecting is a provider whose metrics check the identifier first, as client-go requires of
// providers.
type respecting struct{ *provider }

type respectingGauge struct {
	clientgo.GaugeMetric
	id clientgo.InformerNameAndResource
}

func (g respectingGauge) Set(value float64) {
	if g.id.Reserved() {
		g.GaugeMetric.Set(value)
	}
}

func (r respecting) NewStoreResourceVersionMetric(id clientgo.InformerNameAndResource) clientgo.GaugeMetric {
	return respectingGauge{r.provider.NewStoreResourceVersionMetric(id), id}
}

// TestMetricsOfProcess: informers without a provider publish version and latency with the
// provider of the process. The provider of the process can be set once, so a child process sets
// it.
func TestMetricsOfProcess(t *testing.T) {
	constructor, ok := isChild()
	if !ok {
		for constructor := range constructors {
			if output, code := runChild(t, "TestMetricsOfProcess", constructor); code != 0 {
				t.Errorf("%s: the exit code is %d:\n%s", constructor, code, output)
			}
		}
		return
	}
	p := newProvider()
	cache.SetInformerMetricsProvider(p)
	synctest.Test(t, func(t *testing.T) {
		_, id := named(t, "mine")
		informer := constructors[constructor](newSource(t, "a"), &corev1.Pod{}, clientgo.SharedIndexInformerOptions{Identifier: id})
		runSynced(t, informer)
		time.Sleep(time.Second)
		if _, observed, version := p.look("mine"); observed == 0 || version != 1 {
			t.Errorf("%d batches were observed and the version is %v, want some and 1", observed, version)
		}
	})
}
