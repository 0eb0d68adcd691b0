package dedup

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A churningCache is a population of decoded objects in a cache, behind a sharer.
type churningCache struct {
	*corpus
	t                   *testing.T
	workloads, replicas int
	workload            func(i int) (replica func() any)
	report              func(obj any, n int)
	templates           []func() any
	objects             []any
	updates             int
	sharer              *Sharer
}

// churningPods decodes pods as clients in Go do.
func churningPods(t *testing.T) *churningCache {
	c := &churningCache{t: t, corpus: newCorpus(11, 20), workloads: 40, replicas: 20, report: reportPod}
	c.workload = func(i int) func() any {
		w := c.corpus.workload(i)
		return func() any { return decodedPod(t, encode(c.pod(w))) }
	}
	return c
}

// churningCustom decodes custom resources without a Go type.
func churningCustom(t *testing.T) *churningCache {
	c := &churningCache{t: t, corpus: newCorpus(11, 20), workloads: 40, replicas: 20, report: reportWidget}
	c.workload = func(i int) func() any {
		template := c.widgetTemplate(c.corpus.workload(i))
		return func() any { return decodedWidget(t, c.widget(template)) }
	}
	return c
}

// fill caches all replicas of all workloads.
func (c *churningCache) fill() {
	c.sharer = NewSharer(new(Table), SharerOptions{})
	c.objects = make([]any, c.workloads*c.replicas)
	for w := range c.workloads {
		c.templates = append(c.templates, c.workload(w))
	}
	for i := range c.objects {
		c.objects[i] = c.sharer.Share(c.templates[i/c.replicas]())
	}
}

// day rolls out a tenth of the workloads anew, moves a tenth of the other replicas, and has
// each object that stays report its status.
func (c *churningCache) day(day int) {
	for w := range c.templates {
		rollout := c.random.IntN(10) == 0
		if rollout {
			c.templates[w] = c.workload(w + (day+1)*c.workloads)
		}
		for i := w * c.replicas; i < (w+1)*c.replicas; i++ {
			if rollout || c.random.IntN(10) == 0 {
				c.objects[i] = c.sharer.Share(c.templates[w]())
				continue
			}
			c.updates++
			next := c.decodedAgain(c.objects[i])
			c.report(next, c.updates)
			c.objects[i] = c.sharer.Share(next)
		}
	}
}

// decodedAgain returns a copy of an object that has nothing in common with it.
func (c *churningCache) decodedAgain(obj any) any {
	switch o := obj.(type) {
	case *corev1.Pod:
		return decodedPod(c.t, encode(o))
	case *unstructured.Unstructured:
		return decodedWidget(c.t, encodeJSON(o.Object))
	}
	c.t.Fatalf("%T is neither a pod nor a custom resource", obj)
	return nil
}

// anew returns what a cache has that is filled at once with the objects of this one.
func (c *churningCache) anew() (*Sharer, []any) {
	s := NewSharer(new(Table), SharerOptions{})
	objects := make([]any, len(c.objects))
	for i, obj := range c.objects {
		objects[i] = s.Share(c.decodedAgain(obj))
	}
	return s, objects
}

// TestWeeksOfSharedChurn lets populations churn for six weeks, behind a sharer, with reports
// of every object each day. The table always has room for what is new; in the end the
// population takes no more memory than if it had just been shared, but for a quarter.
func TestWeeksOfSharedChurn(t *testing.T) {
	for name, population := range map[string]func(*testing.T) *churningCache{"pods": churningPods, "custom resources": churningCustom} {
		t.Run(name, func(t *testing.T) {
			c := population(t)
			c.fill()
			table := c.sharer.table
			first := table.Stats()
			for day := range 6 * 7 {
				c.day(day)
				runtime.GC()
				checkTable(t, table.Stats(), day)
			}
			last := table.Stats()
			if last.Forgotten < int64(first.Values) {
				t.Errorf("%+v: little was forgotten, of at first %d values", last, first.Values)
			}
			sharer, fresh := c.anew()
			both, _ := memory()
			runtime.KeepAlive(sharer)
			runtime.KeepAlive(fresh)
			sharer, fresh = nil, nil
			withOld, _ := memory()
			takes := float64(both - withOld)
			runtime.KeepAlive(c.sharer)
			runtime.KeepAlive(c.objects)
			n := float64(len(c.objects))
			c.sharer, c.objects, table = nil, nil, nil
			without, _ := memory()
			runtime.KeepAlive(c)
			took := float64(withOld - without)
			t.Logf("%.0f bytes per object, shared anew %.0f; at first %+v, at last %+v", took/n, takes/n, first, last)
			if took > 1.25*takes {
				t.Errorf("after weeks the population takes %.0f bytes, shared anew %.0f", took, takes)
			}
			if float64(last.Bytes) > took/8 {
				t.Errorf("%+v: that is over an eighth of the population's %.0f bytes", last, took)
			}
		})
	}
}
