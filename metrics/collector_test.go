package metrics

import (
	"fmt"
	"maps"
	"math"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/controller/election"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/histogram"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

var all = Options{ControllerRuntime: true, ClientGo: true}

func TestLint(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector(t, all, everything()...))
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// text returns the lines of the text format that are no comments.
func text(t *testing.T, c *Collector) (lines []string) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	out := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(out,
		httptest.NewRequest("GET", "/metrics", nil))
	if out.Code != 200 {
		t.Fatalf("the scrape answers %d: %s", out.Code, out.Body)
	}
	for line := range strings.Lines(out.Body.String()) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestSeries counts the series of an informer and of a handler, in the text format.
func TestSeries(t *testing.T) {
	count := func(handlers int) int {
		f := &viewed{factory{[]health.Informer{informerWith("pods.v1", handlers)}}}
		return len(text(t, collector(t, Options{}, f)))
	}
	informer := count(0)
	handler := count(1) - informer
	if informer > 12 || handler > 6 {
		t.Errorf("%d series an informer and %d a handler, want at most 12 and 6", informer, handler)
	}
	if three := count(3) - informer; three != 3*handler {
		t.Errorf("%d series for three handlers, and %d for one", three, handler)
	}
}

// viewed is a factory whose informers have views.
type viewed struct{ factory }

func (f *viewed) Inspect() (views []inspect.View) {
	for _, h := range f.Health() {
		views = append(views, view{h: h})
	}
	return views
}

// view is an inspect.View of an informer with one object.
type view struct {
	inspect.View
	h health.Informer
}

func (v view) Health() health.Informer { return v.h }
func (v view) Sample(int) []any        { return []any{new([1000]byte)} }
func (v view) Usage() inspect.Usage    { return inspect.Usage{Objects: 2, KeyBytes: 100} }

// TestMemory scrapes until each of 25 informers was measured.
func TestMemory(t *testing.T) {
	f := &viewed{}
	for i := range 25 {
		f.informers = append(f.informers, informerWith(fmt.Sprint("i", i), 0))
	}
	c := collector(t, Options{}, f)
	for _, want := range []int{10, 20, 25} {
		n := 0
		for _, line := range text(t, c) {
			if strings.HasPrefix(line, "tidings_informer_memory_bytes{") {
				if n++; !strings.HasSuffix(line, "} 2116\n") {
					t.Errorf("want 2116 bytes, 1008 for each object: %s", line)
				}
			}
		}
		if n != want {
			t.Errorf("%d informers have the metric, want %d", n, want)
		}
	}
}

func TestNames(t *testing.T) {
	f := &factory{[]health.Informer{
		informerWith("pods.v1 [in default]", 0), informerWith("pods.v1 [in kube-system]", 0),
		informerWith("pods.v1#2", 0), informerWith("pods.v1", 0), informerWith("a\xffb", 0),
	}}
	informers := func(o Options) []string {
		found := map[string]bool{}
		for _, family := range gathered(t, collector(t, o, f)) {
			for _, m := range family.GetMetric() {
				found[m.GetLabel()[0].GetValue()] = true
			}
		}
		return slices.Sorted(maps.Keys(found))
	}
	want := []string{"a�b", "pods.v1", "pods.v1#2", "pods.v1#2#2", "pods.v1#3"}
	if got := informers(Options{}); !slices.Equal(got, want) {
		t.Errorf("the informers are %q, want %q", got, want)
	}
	want = []string{
		"a�b", "pods.v1", "pods.v1 [in default]", "pods.v1 [in kube-system]", "pods.v1#2",
	}
	if got := informers(Options{Selections: true}); !slices.Equal(got, want) {
		t.Errorf("with selections, the informers are %q, want %q", got, want)
	}
}

// TestNoLabelHasANamespaceOrAKey looks at all labels of sources that have both.
func TestNoLabelHasANamespaceOrAKey(t *testing.T) {
	const secret = "payroll"
	h := informerWith("pods.v1 [in "+secret+"]", 1)
	h.Namespaces = map[string]health.Watch{secret: {}}
	h.Handlers[0].Running = secret + "/pod"
	m := &manager{controller.ManagerHealth{
		Controllers: []controller.Health{{
			Oldest: secret + "/a", Running: []controller.Running{{Key: secret + "/b"}},
			Flows: []controller.Flow{{Name: secret}}, LastErrorOf: secret + "/c",
			Fights:    []controller.Rewrite{{Key: secret + "/d", Fields: []string{secret}, Other: secret}},
			Informers: []controller.FollowedInformer{{Name: "pods.v1 [in " + secret + "]"}},
		}},
		Election: &election.Health{Lease: secret + "/lease", Holder: secret},
	}}
	for _, line := range text(t, collector(t, all, &factory{[]health.Informer{h}}, m)) {
		if strings.Contains(line, secret) {
			t.Error(line)
		}
	}
}

func TestLastEventAge(t *testing.T) {
	const age = "tidings_informer_last_event_age_seconds"
	h := informerWith("pods.v1", 0)
	h.Namespaces = map[string]health.Watch{
		"a": {LastEvent: time.Now()}, "b": {LastEvent: time.Now().Add(-time.Hour)}, "c": {},
	}
	for _, w := range h.Namespaces {
		h.Watch.Add(w)
	}
	f := &factory{[]health.Informer{h}}
	c := collector(t, Options{}, f)
	if got, _ := value(gathered(t, c), age); got < 3600 || got > 3660 {
		t.Errorf("the age is %v, want that of the namespace that is an hour behind", got)
	}
	f.informers[0].State = health.StateStopped
	if _, ok := value(gathered(t, c), age); ok {
		t.Error("an informer that has stopped has an age")
	}
	f.informers[0] = health.Informer{Name: "pods.v1"}
	if _, ok := value(gathered(t, c), age); ok {
		t.Error("an informer that has heard nothing has an age")
	}
}

func TestRemovedHandlersHaveNoMetrics(t *testing.T) {
	h := informerWith("pods.v1", 2)
	h.Handlers[0].State = health.HandlerRemoved
	families := gathered(t, collector(t, Options{}, &factory{[]health.Informer{h}}))
	for name, want := range map[string]bool{"handler-1": false, "handler-2": true} {
		if _, got := value(families, "tidings_handler_panics_total", "handler="+name); got != want {
			t.Errorf("%s has metrics: %v, want %v", name, got, want)
		}
	}
}

// TestHistograms compares a histogram with that of the client library.
func TestHistograms(t *testing.T) {
	var buckets []float64
	for e := firstClassic; e <= lastClassic; e += classicStep {
		buckets = append(buckets, math.Exp2(float64(e)))
	}
	theirs := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "a", Help: "b", Buckets: buckets, NativeHistogramBucketFactor: 2,
		NativeHistogramZeroThreshold: math.Exp2(float64(histogram.Exponent(0))),
	})
	var counts histogram.Histogram
	write := func(m prometheus.Metric) *dto.Histogram {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		out.Histogram.CreatedTimestamp = nil
		return out.Histogram
	}
	for i, d := range []time.Duration{
		0, time.Second, time.Nanosecond, 900 * time.Nanosecond, 3 * time.Minute, time.Second / 4,
		time.Millisecond, time.Millisecond, 17 * time.Microsecond, time.Second/4 + 1,
	} {
		theirs.Observe(d.Seconds())
		counts.Observe(d)
		got := write(&distribution{family: &family{classic: true}, durations: counts.Durations()})
		want := write(theirs)
		if sum := got.GetSampleSum(); math.Abs(sum-want.GetSampleSum()) > 1e-9 {
			t.Errorf("the sum is %v, want %v", sum, want.GetSampleSum())
		}
		want.SampleSum, got.SampleSum = nil, nil
		expand(want)
		expand(got)
		if !proto.Equal(got, want) {
			t.Fatalf("after %d durations the histogram is\n%v\nwant\n%v", i+1, got, want)
		}
	}
}

// expand replaces the spans of a histogram by counts of all buckets.
func expand(h *dto.Histogram) {
	counts, index, count := make([]int64, 64), int32(32), int64(0)
	deltas := h.PositiveDelta
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			count, deltas = count+deltas[0], deltas[1:]
			counts[index] = count
			index++
		}
	}
	h.PositiveSpan, h.PositiveDelta = nil, counts
}

func TestAddErrors(t *testing.T) {
	for want, of := range map[string]any{
		"metrics: Add: the source is nil":             nil,
		"metrics: Add: the *tidings.Factory is nil":   (*tidings.Factory)(nil),
		"metrics: Add: a int has no health: pass a f": 7,
		"metrics: Add: the []int cannot be compared":  []int{},
	} {
		c := New(Options{})
		err := c.Add(&factory{}, of)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
		if c.sources.Len() > 0 {
			t.Error("a source was added in spite of the error")
		}
	}
}

func TestAddAndRemove(t *testing.T) {
	f := &factory{[]health.Informer{informerWith("pods.v1", 0)}}
	c := collector(t, Options{}, f, f)
	expect(t, c, 3, "tidings_informer_objects", "informer=pods.v1")
	c.Remove(&factory{})
	expect(t, c, 3, "tidings_informer_objects", "informer=pods.v1")
	c.Remove(f)
	if families := gathered(t, c); len(families) > 0 {
		t.Errorf("%d metrics of a source that was removed", len(families))
	}
}

// TestConcurrentScrapes scrapes while sources come and go.
func TestConcurrentScrapes(t *testing.T) {
	c := collector(t, all, everything()...)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				if _, ok := value(gathered(t, c), "tidings_informer_objects"); !ok {
					t.Error("the first informer has no metrics")
				}
			}
		})
		group.Go(func() {
			for range 20 {
				pods := informerWith("pods.v1", 1)
				pods.Published = health.Published{} // no two informers publish under one name
				f := &factory{[]health.Informer{pods}}
				if err := c.Add(f); err != nil {
					t.Error(err)
				}
				c.Remove(f)
			}
		})
	}
	group.Wait()
	if want := len(everything()); c.sources.Len() != want {
		t.Errorf("%d sources are left, want %d", c.sources.Len(), want)
	}
}

// TestWrappedRegisterer: a collector for each factory, with a label that tells them apart.
func TestWrappedRegisterer(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	for _, cluster := range []string{"east", "west"} {
		wrapped := prometheus.WrapRegistererWith(prometheus.Labels{"cluster": cluster}, registry)
		if err := wrapped.Register(collector(t, Options{}, everything()...)); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range []string{"east", "west"} {
		if v, _ := value(families, "tidings_informer_objects", "cluster="+cluster); v != 3 {
			t.Errorf("%v objects in %s, want 3", v, cluster)
		}
	}
}

// namesElsewhere are the names and labels of controller-runtime v0.25.2, and of the informers of
// Kubernetes v1.37.
var namesElsewhere = map[string]string{
	"controller_runtime_active_workers":                  "controller",
	"controller_runtime_max_concurrent_reconciles":       "controller",
	"controller_runtime_reconcile_errors_total":          "controller",
	"controller_runtime_reconcile_panics_total":          "controller",
	"controller_runtime_reconcile_time_seconds":          "controller",
	"controller_runtime_reconcile_timeouts_total":        "controller",
	"controller_runtime_reconcile_total":                 "controller result",
	"controller_runtime_terminal_reconcile_errors_total": "controller",
	"informer_processing_latency_seconds":                "group name resource version",
	"informer_queued_items":                              "group name resource version",
	"informer_store_resource_version":                    "group name resource version",
	"leader_election_master_status":                      "name",
	"workqueue_adds_total":                               "controller name",
	"workqueue_depth":                                    "controller name priority",
	"workqueue_longest_running_processor_seconds":        "controller name",
	"workqueue_queue_duration_seconds":                   "controller name",
	"workqueue_retries_total":                            "controller name",
	"workqueue_unfinished_work_seconds":                  "controller name",
	"workqueue_work_duration_seconds":                    "controller name",
}

func TestNamesOfControllerRuntimeAndClientGo(t *testing.T) {
	got := map[string]string{}
	families := gathered(t, collector(t, all, everything()...))
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), "tidings_") {
			got[f.GetName()] = strings.Join(labelsOf(f), " ")
		}
	}
	if !reflect.DeepEqual(got, namesElsewhere) {
		t.Errorf("the names are %v, want %v", got, namesElsewhere)
	}
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{3, "workqueue_depth", []string{"controller=images", "name=images", "priority=0"}},
		{4, "workqueue_depth", []string{"priority=-100"}},
		{7, "workqueue_retries_total", nil}, {20, "workqueue_adds_total", nil},
		{5, "controller_runtime_reconcile_total", []string{"result=error"}},
		{4, "controller_runtime_reconcile_total", []string{"result=requeue_after"}},
		{5, "controller_runtime_reconcile_total", []string{"result=success"}},
		{1, "leader_election_master_status", []string{"name=images"}},
		{678901234567890, "informer_store_resource_version", []string{"name=mine", "group=apps"}},
	} {
		if v, ok := value(families, test.name, test.labels...); !ok || v != test.want {
			t.Errorf("%s%v is %v, want %v", test.name, test.labels, v, test.want)
		}
	}
	for _, f := range gathered(t, collector(t, Options{}, everything()...)) {
		if !strings.HasPrefix(f.GetName(), "tidings_") {
			t.Errorf("%s without its option", f.GetName())
		}
	}
}

// labelsOf returns the names of the labels of a metric.
func labelsOf(f *dto.MetricFamily) (names []string) {
	for _, pair := range f.GetMetric()[0].GetLabel() {
		names = append(names, pair.GetName())
	}
	return names
}

// TestControllersAndGuards reads the metrics of a manager that differ by labels.
func TestControllersAndGuards(t *testing.T) {
	families := gathered(t, collector(t, Options{}, everything()...))
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{2, "tidings_controller_rewritten_objects", []string{"controller=images", "kind=fight"}},
		{1, "tidings_controller_rewritten_objects", []string{"controller=images", "kind=loop"}},
		{3, "tidings_controller_awaited_writes", []string{"controller=images"}},
		{9, "tidings_controller_lag_seconds", []string{"controller=images"}},
		{9, "tidings_controller_write_lag_seconds", []string{"controller=images", "informer=pods.v1"}},
		{0, "tidings_controller_write_lag_seconds", []string{"controller=images", "informer=pods.v1#2"}},
		{7, "tidings_guard_writes_total", []string{"by=call", "server=https://server"}},
		{2, "tidings_guard_writes_total", []string{"by=event"}},
		{1, "tidings_guard_writes_total", []string{"by=other"}},
		{3, "tidings_guard_refused_total", []string{"reason=fenced"}},
		{4, "tidings_guard_refused_total", []string{"reason=late"}},
		{5, "tidings_guard_refused_total", []string{"reason=unfit"}},
		{6, "tidings_guard_refused_total", []string{"reason=shadow"}},
	} {
		if v, ok := value(families, test.name, test.labels...); !ok || v != test.want {
			t.Errorf("%s%v is %v, want %v", test.name, test.labels, v, test.want)
		}
	}
}
