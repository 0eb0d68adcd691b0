package histogram

import (
	"encoding/json"
	"math"
	"sync"
	"testing"
	"time"
)

// TestBounds observes durations at and beside each bound.
func TestBounds(t *testing.T) {
	for i := range size {
		exact := math.Exp2(float64(Exponent(i))) * float64(time.Second)
		if got := bound(i); got != time.Duration(math.Floor(exact)) {
			t.Errorf("bound(%d) is %v, want %v", i, got, time.Duration(exact))
		}
		if got := index(bound(i)); got != i {
			t.Errorf("%v has the index %d, want %d", bound(i), got, i)
		}
		if got, want := index(bound(i)+1), min(i+1, size-1); got != want {
			t.Errorf("%v has the index %d, want %d", bound(i)+1, got, want)
		}
	}
	if got := index(math.MaxInt64); got != size-1 {
		t.Errorf("the longest duration has the index %d", got)
	}
}

func TestDurations(t *testing.T) {
	var h Histogram
	h.Observe(time.Second)
	h.ObserveRun(16, 160*time.Microsecond)
	h.ObserveRun(0, time.Hour)
	h.Observe(-time.Second)
	d := h.Durations()
	want := Durations{Sum: time.Second + 160*time.Microsecond}
	want.Counts[0], want.Counts[index(10*time.Microsecond)], want.Counts[second] = 1, 16, 1
	if d != want || d.Count() != 18 {
		t.Errorf("%d durations: %+v, want %+v", d.Count(), d, want)
	}
	form, err := json.Marshal(d)
	const wantForm = `{"count":18,"sum":"1.00016s","upTo":{"15.258µs":16,"1s":1,"953ns":1}}`
	if err != nil || string(form) != wantForm {
		t.Errorf("the JSON form is %s (%v), want %s", form, err, wantForm)
	}
	var read Durations
	if err := json.Unmarshal(form, &read); err != nil || read != d {
		t.Errorf("read: %v (%v), want %v", read, err, d)
	}
	if err := json.Unmarshal([]byte(`{"sum":"long"}`), &read); err == nil {
		t.Error("a sum that is no duration is no error")
	}
}

func TestConcurrentObservations(t *testing.T) {
	var h Histogram
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for i := range 1000 {
				h.Observe(time.Duration(i) * time.Microsecond)
			}
		})
	}
	group.Wait()
	if d := h.Durations(); d.Count() != 4000 || d.Sum != 4*999*500*time.Microsecond {
		t.Errorf("%d durations of %v", d.Count(), d.Sum)
	}
}

func TestObserveDoesNotAllocate(t *testing.T) {
	var h Histogram
	if n := testing.AllocsPerRun(100, func() { h.Observe(time.Millisecond) }); n > 0 {
		t.Errorf("an observation allocates %v times", n)
	}
}

func BenchmarkObserve(b *testing.B) {
	var h Histogram
	for d := time.Duration(1); b.Loop(); d += 777 {
		h.Observe(d)
	}
}

func TestQuantiles(t *testing.T) {
	var h Histogram
	if d := h.Durations(); d.Quantile(0.5) != 0 || d.Mean() != 0 {
		t.Errorf("without durations: %v, %v", d.Quantile(0.5), d.Mean())
	}
	for range 99 {
		h.Observe(time.Millisecond)
	}
	h.Observe(time.Minute)
	d := h.Durations()
	for part, want := range map[float64]time.Duration{
		0: bound(11), 0.5: bound(11), 0.99: bound(11), 0.995: 64 * time.Second, 1: 64 * time.Second,
	} {
		if got := d.Quantile(part); got != want {
			t.Errorf("%v of the durations do not exceed %v, want %v", part, got, want)
		}
	}
	if want := (99*time.Millisecond + time.Minute) / 100; d.Mean() != want {
		t.Errorf("the mean is %v, want %v", d.Mean(), want)
	}
}
