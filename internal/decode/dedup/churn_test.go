package dedup

import (
	"flag"
	"os"
	"reflect"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var full = flag.Bool("dedup.full", os.Getenv("TIDINGS_DEDUP_FULL") != "",
	"let populations churn for six weeks and not for two (TIDINGS_DEDUP_FULL)")

// A churnTest is a kind of encoded objects, and a cache that decodes them.
type churnTest struct {
	workload func(c *corpus, i int) (replica func() []byte)
	report   func(data []byte, n int) []byte // a new state of an object
	cache    func(table *Table) (decode func(data []byte) any)
	most     float64 // memory after weeks, in that of a new cache
}

func churnTests(t *testing.T) map[string]churnTest {
	pods := func(c *corpus, i int) func() []byte {
		w := c.workload(i)
		return func() []byte { return encode(c.pod(w)) }
	}
	custom := func(c *corpus, i int) func() []byte {
		w := c.workload(i)
		return func() []byte { return c.widget(w) }
	}
	podReport := func(data []byte, n int) []byte {
		pod := decodedPod(t, data)
		reportPod(pod, n)
		return encode(pod.(*corev1.Pod))
	}
	podsInJSON := func(c *corpus, i int) func() []byte {
		w := c.workload(i)
		return func() []byte { return encodeJSON(c.pod(w)) }
	}
	podReportInJSON := func(data []byte, n int) []byte {
		pod := decodeJSON[corev1.Pod](data)
		reportPod(pod, n)
		return encodeJSON(pod)
	}
	customReport := func(data []byte, n int) []byte {
		u := decodedWidget(t, data)
		reportWidget(u, n)
		return encodeJSON(u.(*unstructured.Unstructured).Object)
	}
	sharing := func(decoded func(testing.TB, []byte) any) func(*Table) func([]byte) any {
		return func(table *Table) func([]byte) any {
			s := NewSharer(table, SharerOptions{})
			return func(data []byte) any { return s.Share(decoded(t, data)) }
		}
	}
	return map[string]churnTest{
		"pods": {pods, podReport, func(table *Table) func([]byte) any {
			return decodeWith(t, NewDecoder(table, &corev1.Pod{}, ShareAll))
		}, 7. / 6},
		"maps": {custom, customReport, func(table *Table) func([]byte) any {
			return decodeMapsWith(t, NewMapDecoder(table, widgets, ShareAll, nil))
		}, 7. / 6},
		"pods in JSON": {podsInJSON, podReportInJSON, func(table *Table) func([]byte) any {
			return decodeStructsWith(t, newStructDecoder(table, reflect.TypeFor[corev1.Pod](), ShareAll))
		}, 7. / 6},
		"shared pods":             {pods, podReport, sharing(decodedPod), 1.25},
		"shared custom resources": {custom, customReport, sharing(decodedWidget), 1.25},
	}
}

// TestWeeksOfChurn lets populations churn for two weeks, or six, as in a cluster: each day, a tenth
// of the workloads are rolled out, a tenth of the other objects are replaced, and the rest
// report their status. The table always has room for new values, and after a week plenty. In
// the end the population may take little more memory than in a new cache, and the table may
// not have outgrown it.
func TestWeeksOfChurn(t *testing.T) {
	for name, test := range churnTests(t) {
		t.Run(name, func(t *testing.T) { test.run(t) })
	}
}

func (test churnTest) run(t *testing.T) {
	const workloads, replicas = 40, 20
	c := newCorpus(11, replicas)
	var replica []func() []byte
	for w := range workloads {
		replica = append(replica, test.workload(c, w))
	}
	data := make([][]byte, workloads*replicas)
	for i := range data {
		data[i] = replica[i/replicas]()
	}
	all := func(decode func([]byte) any) []any {
		objects := make([]any, len(data))
		for i := range data {
			objects[i] = decode(data[i])
		}
		return objects
	}
	table := new(Table)
	decode := test.cache(table)
	objects := all(decode)
	first, reports := table.Stats(), 0
	days := 2 * 7
	if *full {
		days = 6 * 7
	}
	for day := range days {
		for w := range workloads {
			rollout := c.random.IntN(10) == 0
			if rollout {
				replica[w] = test.workload(c, w+(day+1)*workloads)
			}
			for i := w * replicas; i < (w+1)*replicas; i++ {
				if rollout || c.random.IntN(10) == 0 {
					data[i] = replica[w]()
				} else {
					reports++
					data[i] = test.report(data[i], reports)
				}
				objects[i] = decode(data[i])
			}
		}
		runtime.GC()
		s := table.Stats()
		if s.Bytes > s.Budget || s.Refused > 0 || day > 7 && s.Bytes > s.Budget*2/3 {
			t.Errorf("day %d: %+v: there is little room left, or something was refused", day, s)
		}
	}
	last := table.Stats()
	if last.Forgotten < int64(first.Values) {
		t.Errorf("%+v: little was forgotten, of at first %d values", last, first.Values)
	}

	withAll, _ := memory()
	runtime.KeepAlive(decode)
	runtime.KeepAlive(objects)
	decode, table, objects = nil, nil, nil
	without, _ := memory()
	decode = test.cache(new(Table))
	objects = all(decode)
	fresh, _ := memory()
	runtime.KeepAlive(decode)
	runtime.KeepAlive(objects)
	runtime.KeepAlive(data)
	took, takes := float64(withAll-without), float64(fresh-without)
	n := float64(len(data))
	t.Logf("%.0f bytes per object, in a new cache %.0f; %+v", took/n, takes/n, last)
	if took > takes*test.most {
		t.Errorf("after weeks the population takes %.0f bytes, in a new cache %.0f", took, takes)
	}
	if float64(last.Bytes) > took/8 {
		t.Errorf("%+v: that is over an eighth of the population's %.0f bytes", last, took)
	}
}
