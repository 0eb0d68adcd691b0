package dedup

import (
	"runtime"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWeeksOfChurningMaps lets custom resources churn as TestWeeksOfChurn lets pods, with
// the same bounds, and the table's own.
func TestWeeksOfChurningMaps(t *testing.T) {
	const workloads, replicas = 40, 20
	c := newCorpus(11, replicas)
	of := make([]string, workloads)
	data := make([][]byte, workloads*replicas)
	for w := range of {
		of[w] = c.widgetTemplate(c.workload(w))
	}
	for i := range data {
		data[i] = c.widget(of[i/replicas])
	}
	decode := func(d *MapDecoder, into []map[string]any, i int) {
		var err error
		if into[i], err = d.Unmarshal(data[i]); err != nil {
			t.Fatal(err)
		}
	}
	decodeAll := func(d *MapDecoder) []map[string]any {
		into := make([]map[string]any, len(data))
		for i := range data {
			decode(d, into, i)
		}
		return into
	}
	table := new(Table)
	d := NewMapDecoder(table, widgets, ShareAll, nil)
	kept := decodeAll(d)
	first, reports := table.Stats(), 0
	for day := range 6 * 7 {
		for w := range of {
			rollout := c.random.IntN(10) == 0
			if rollout {
				of[w] = c.widgetTemplate(c.workload(w + (day+1)*workloads))
			}
			for i := w * replicas; i < (w+1)*replicas; i++ {
				if rollout || c.random.IntN(10) == 0 {
					data[i] = c.widget(of[w])
				} else {
					next := decodedWidget(t, data[i]).(*unstructured.Unstructured)
					reports++
					reportWidget(next, reports)
					data[i] = encodeJSON(next.Object)
				}
				decode(d, kept, i)
			}
		}
		runtime.GC()
		checkTable(t, table.Stats(), day)
	}
	last := table.Stats()
	if last.Forgotten < int64(first.Values) {
		t.Errorf("%+v: little was forgotten, of at first %d values", last, first.Values)
	}
	withAll, _ := memory()
	runtime.KeepAlive(d)
	runtime.KeepAlive(kept)
	d, table, kept = nil, nil, nil
	without, _ := memory()
	d = NewMapDecoder(new(Table), widgets, ShareAll, nil)
	kept = decodeAll(d)
	fresh, _ := memory()
	runtime.KeepAlive(d)
	runtime.KeepAlive(kept)
	runtime.KeepAlive(data)
	took, takes := float64(withAll-without), float64(fresh-without)
	t.Logf("%.0f bytes per object, decoded anew %.0f; %+v", took/float64(len(data)), takes/float64(len(data)), last)
	if took > takes*7/6 {
		t.Errorf("after weeks the population takes %.0f bytes, decoded anew %.0f", took, takes)
	}
	if float64(last.Bytes) > took/8 {
		t.Errorf("%+v: that is over an eighth of the population's %.0f bytes", last, took)
	}
}

// TestBudgetOfMaps gives the table little room, and texts that want much.
func TestBudgetOfMaps(t *testing.T) {
	table := &Table{MaxBytes: 1 << 14}
	d := NewMapDecoder(table, widgets, ShareAll, nil)
	for _, data := range newCorpus(5, 2).widgets(150) {
		for range 2 {
			sameMap(t, d, data)
			if s := table.Stats(); s.Bytes > s.Budget {
				t.Fatalf("%+v: more than the budget", s)
			}
		}
	}
	if s := table.Stats(); s.Refused == 0 || s.Kept == 0 {
		t.Errorf("%+v: nothing was kept, or nothing refused", s)
	}
}

// TestWhatMapsTake holds the decoder to what it is for: custom resources of 60 workloads
// take at most a third of the heap, and a tenth of the allocations, that the API machinery
// needs; those that have nothing in common do not take more.
func TestWhatMapsTake(t *testing.T) {
	c := newCorpus(1, 20)
	all := c.widgets(60)
	shared, alone := keepMaps(t, all, ShareAll), keepMaps(t, all, ShareNothing)
	t.Logf("%d bytes of JSON: %.0f bytes and %.0f allocations instead of %.0f and %.0f", size(all), shared.heap, shared.mallocs, alone.heap, alone.mallocs)
	if shared.heap > alone.heap/3 || shared.mallocs > alone.mallocs/10 {
		t.Errorf("shared %+v, alone %+v", shared, alone)
	}
	var scrambled [][]byte
	for range 500 {
		scrambled = append(scrambled, c.scrambledWidget())
	}
	shared, alone = keepMaps(t, scrambled, ShareAll), keepMaps(t, scrambled, ShareNothing)
	t.Logf("without repetition: %.0f bytes and %.0f allocations instead of %.0f and %.0f", shared.heap, shared.mallocs, alone.heap, alone.mallocs)
	if shared.heap > alone.heap*1.05 || shared.mallocs > alone.mallocs/2 {
		t.Errorf("without repetition: %+v, alone %+v", shared, alone)
	}
}
