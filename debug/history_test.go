package debug

import (
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/gather"
)

// TestHistoryBeginsWithAdd: the history has the time before the first request, and at most an hour.
func TestHistoryBeginsWithAdd(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		pages := New(Options{})
		w.fatal(pages.Add(w.shown...))
		begun := time.Now()
		w.pass(20 * time.Minute)
		w.pages, pages = pages, w.pages
		defer pages.Close()
		defer w.pages.Close()
		o := getJSON[Overview](w, "/?history=1")
		if g := o.History.Graphs[5]; g.Times[0] != o.History.From || !g.Times[120].Equal(o.History.To) {
			t.Errorf("the times from JSON are %v to %v", g.Times[0], g.Times[120])
		}
		if len(o.History.Graphs[0].Values) != 121 || !o.History.From.Equal(begun) || !o.History.To.Equal(time.Now()) {
			t.Errorf("the history from %v to %v has %d values", o.History.From, o.History.To, len(o.History.Graphs[0].Values))
		}
		w.pass(2 * time.Hour)
		for _, path := range []string{"/?history=1", configMaps + "&history=1", "/controller?name=labels&history=1"} {
			f := getJSON[struct{ History History }](w, path)
			for _, g := range f.History.Graphs {
				if len(g.Values) != historyPoints || f.History.To.Sub(f.History.From) != (historyPoints-1)*historyPeriod {
					t.Errorf("%s: %s has %d values", path, g.Title, len(g.Values))
				}
			}
		}
		w.has("/", false, `"history"`)
		if f := getJSON[Overview](w, "/"); f.History != nil {
			t.Error("JSON has a history without the parameter")
		}
	})
}

// TestTheHistoryEnds: Close waits for the goroutine; without Add there is none.
func TestTheHistoryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(Options{})
		h.Close()
		if err := h.Add(new(controller.Manager)); err != nil {
			t.Fatal(err)
		}
		h.Close() // the end of the bubble finds a goroutine that was started after Close
		h = New(Options{})
		if err := h.Add(new(controller.Manager)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		h.Close()
		select {
		case <-h.sampler.ended:
		default:
			t.Error("the goroutine runs after Close")
		}
		h.Close()
	})
}

// TestSamplesOfTwoMinutes are kept while somebody looks.
func TestSamplesOfTwoMinutes(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		kept := func() int { return len(w.pages.sampler.values("informer configmaps.v1", "objects")) }
		w.pass(10 * time.Second)
		if n := kept(); n < 10 || n > 11 {
			t.Errorf("%d samples after 10 seconds", n)
		}
		w.pass(samplerIdle - 20*time.Second)
		if n := kept(); n != samples {
			t.Errorf("%d samples are kept, want %d", n, samples)
		}
		w.pass(time.Minute)
		if n := kept(); n != 0 {
			t.Errorf("%d samples are kept though nobody looks", n)
		}
	})
}

// figuresOf returns a history with the values of a figure of a track, in turn.
func figuresOf(name, figure string, values ...float64) *history {
	h := new(history)
	for i, v := range values {
		h.add(time.Unix(int64(i)*10, 0), map[string]sample{name: {figure: v}})
	}
	return h
}

// TestCountersAreKeptAsTheirGrowth, also after they began anew.
func TestCountersAreKeptAsTheirGrowth(t *testing.T) {
	got := figuresOf("controller a", "calls", 70, 70, 90, 5, 15).of("controller a", "calls", add)
	if want := (Series{0, 0, 2, 0, 1}); !slices.Equal(got, want) {
		t.Errorf("calls a second: %v, want %v", got, want)
	}
	if got := figuresOf("process", "heap", 7, 5).of("process", "heap", add); !slices.Equal(got, Series{7, 5}) {
		t.Errorf("the heap is %v", got)
	}
}

// TestHistoriesAreJoined at their ends, and what is gone is dropped.
func TestHistoriesAreJoined(t *testing.T) {
	h := new(history)
	h.add(time.Unix(0, 0), map[string]sample{"controller a": {"age": 3}, "controller gone": {"age": 99}})
	h.add(time.Unix(10, 0), map[string]sample{"controller a": {"age": 5}, "controller b": {"age": 8}})
	if got := h.of("controller ", "age", largest); !slices.Equal(got, Series{3, 8}) {
		t.Errorf("the largest are %v", got)
	}
	if got := h.of("controller a", "age", add); !slices.Equal(got, Series{3, 5}) {
		t.Errorf("a is %v", got)
	}
}

// TestLagHasGaps where no call was for an own write.
func TestLagHasGaps(t *testing.T) {
	h := new(history)
	for i, of := range []sample{{"lag sum": 0, "lag count": 0}, {"lag sum": 6, "lag count": 3}, {"lag sum": 6, "lag count": 3}} {
		h.add(time.Unix(int64(i), 0), map[string]sample{"controller a": of})
	}
	got := lagOf(h, "controller ")
	if len(got) != 3 || !math.IsNaN(got[0]) || got[1] != 2 || !math.IsNaN(got[2]) {
		t.Errorf("the lag is %v", got)
	}
	form, err := got.MarshalJSON()
	if err != nil || string(form) != "[null,2,null]" {
		t.Errorf("the JSON form is %s (%v)", form, err)
	}
	if path := line(got, 2, 12, func(n int) float64 { return float64(n) }); strings.Contains(path, "NaN") {
		t.Errorf("the path is %s", path)
	}
}

// TestMarks: lists and watches anew, holders, and hand-overs.
func TestMarks(t *testing.T) {
	h := new(history)
	for i, all := range []map[string]sample{
		{"informer a": {"lists anew": 0, "watches anew": 0}, "lease l": {"terms": 4}, "group g": {"in": 0, "out": 0}},
		{"informer a": {"lists anew": 0, "watches anew": 0}, "lease l": {"terms": 4}, "group g": {"in": 128, "out": 0}},
		{"informer a": {"lists anew": 0, "watches anew": 1}, "lease l": {"terms": 5}, "group g": {"in": 128, "out": 3}},
		{"informer a": {"lists anew": 1, "watches anew": 1}, "lease l": {"terms": 5}, "group g": {"in": 128, "out": 3}},
	} {
		h.add(time.Unix(int64(i), 0).UTC(), all)
	}
	var got []string
	for _, m := range h.marks("informer ", "lease ", "group ") {
		got = append(got, m.At.Format("5 ")+m.Kind+" "+m.What)
	}
	want := []string{
		"1 move g gives entries to this process", "2 watch a watches anew", "2 move g takes entries from this process",
		"2 term l has another holder", "3 relist a lists anew",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the marks are %q, want %q", got, want)
	}
	if len(h.marks("informer b")) > 0 {
		t.Error("another informer has marks")
	}
}

// TestRestarts counts lists and watches, but for the first ones and those that fail, which hide no
// others of their informer.
func TestRestarts(t *testing.T) {
	one := func(lists, watches uint64, failures int) health.Informer {
		return health.Informer{Watch: health.Watch{Lists: lists, Watches: watches, Failures: failures}}
	}
	beside := func(lists, watches uint64, failures int) health.Informer { // a namespace that is forbidden
		i := one(0, 0, 0)
		i.Namespaces = map[string]health.Watch{
			"a": one(lists, watches, failures).Watch, "forbidden": one(10*lists, 0, int(lists)).Watch,
		}
		return i
	}
	for name, of := range map[string]func(lists, watches uint64, failures int) health.Informer{
		"alone": one, "beside a forbidden namespace": beside,
	} {
		r := new(restarts)
		for i, step := range []struct {
			is   health.Informer
			want attempts
		}{
			{of(0, 0, 0), attempts{}},
			{of(3, 0, 3), attempts{}}, // the first one fails
			{of(4, 0, 0), attempts{}},
			{of(4, 1, 0), attempts{}},
			{of(4, 2, 0), attempts{0, 1}},
			{of(5, 3, 0), attempts{1, 2}},
			{of(8, 9, 2), attempts{1, 2}},
			{of(9, 10, 0), attempts{5, 9}},
			{of(1, 1, 0), attempts{5, 9}}, // another one
			{of(2, 1, 0), attempts{6, 9}},
		} {
			if got := r.add([]gather.Informer{{Name: "i", Health: step.is}})["i"]; got != step.want {
				t.Errorf("%s, step %d: %v anew, want %v", name, i, got, step.want)
			}
		}
		if all := r.add(nil); len(all)+len(r.last) > 0 {
			t.Errorf("%s: it keeps %v and %v of an informer that is gone", name, all, r.last)
		}
	}
}

// TestBehindBeforeTheFirstRequest: the history tells how far a handler is behind.
func TestBehindBeforeTheFirstRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newSampler(t.Context(), nil)
		for _, of := range []struct{ delivered, pending float64 }{{5, 0}, {5, 2}, {6, 2}, {6, 4}} {
			h.add(time.Now(), map[string]sample{"informer a": {
				counterPrefix + "x": of.delivered, "pending of x": of.pending,
			}}, false, true)
			time.Sleep(historyPeriod)
		}
		if got := h.behind("a", health.Handler{Name: "x", Delivered: 6, Pending: 4}); got != 30*time.Second {
			t.Errorf("it is behind by %v", got)
		}
		if got := h.behind("a", health.Handler{Name: "x", Delivered: 10}); got != 0 {
			t.Errorf("it is behind by %v with nothing pending", got)
		}
	})
}

// TestGraphs have their values as text, and a page has no graph that cannot be drawn.
func TestGraphs(t *testing.T) {
	inWorld(t, Options{}, func(w *world) {
		w.pass(time.Minute)
		w.has("/", true, "<b>Oldest queued key</b>: ", "<b>Memory of the heap</b>: ", `<path d="M`, "graphs from 00:00:05 UTC on")
		w.has("/", false, "NaN", "+Inf")
	})
	g := Graph{Unit: seconds, Values: Series{2, 0.5, 1}, Times: []time.Time{time.Unix(0, 0), time.Unix(10, 0), time.Unix(20, 0)}}
	if got := g.Summary(); got != "1s now, highest 2s at 00:00:00 UTC, lowest 500ms" {
		t.Error(got)
	}
	for _, test := range []struct {
		values Series
		want   bool
	}{{nil, false}, {Series{0, 0}, false}, {Series{math.NaN()}, false}, {Series{0, 1}, true}} {
		if got := (Graph{Values: test.values}).HasValues(); got != test.want {
			t.Errorf("%v: there is something to draw: %t", test.values, got)
		}
	}
	if got := (Graph{Values: Series{0, 1, math.NaN(), 8, 2, 2}}).Bars(6); got != "▁▂ █▃▃" {
		t.Errorf("the bars are %q", got)
	}
	if got := (Graph{Values: Series{0, 1, math.NaN(), 8, 2, 2}}).Bars(3); got != "▂█▃" {
		t.Errorf("the bars of two values each are %q", got)
	}
	if got := (Graph{Values: Series{math.NaN()}}).Summary(); got != "no value yet" {
		t.Error(got)
	}
}

// TestRatesBeforeTheSecondSample are those of the history.
func TestRatesBeforeTheSecondSample(t *testing.T) {
	s := newSampler(t.Context(), nil)
	for _, n := range []float64{5, 5, 85} {
		s.add(time.Now(), map[string]sample{"controller a": {"calls": n}}, false, true)
	}
	if got := s.rate("controller a", "calls"); got != 8 {
		t.Errorf("the rate is %v, want 8", got)
	}
	for _, n := range []float64{85, 88} {
		s.add(time.Now(), map[string]sample{"controller a": {"calls": n}}, true, false)
	}
	if got := s.rate("controller a", "calls"); got != 3 {
		t.Errorf("the rate is %v, want 3", got)
	}
}
