package histogram

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// size is the number of counts.
	size = 34
	// second is the index of the count of durations up to a second.
	second = 20
)

// Durations counts durations by their length.
type Durations struct {
	// Sum is the sum of the durations.
	Sum time.Duration
	// Counts has the number of the durations up to each bound: Counts[0] counts those of at
	// most 2^-20 s, about a microsecond, and Counts[i] those of more than 2^(i-21) s and at
	// most 2^(i-20) s. The last one also counts all that are longer.
	Counts [size]uint64
}

// Exponent returns the exponent of a bound: Counts[i] counts durations of at most 2^Exponent(i)
// seconds.
func Exponent(i int) int { return i - second }

// Count returns the number of durations.
func (d Durations) Count() (n uint64) {
	for _, c := range d.Counts {
		n += c
	}
	return n
}

// Mean returns the mean of the durations, 0 without any.
func (d Durations) Mean() time.Duration {
	return d.Sum / time.Duration(max(d.Count(), 1))
}

// Quantile returns a bound that a part of the durations, from 0 to 1, do not exceed; 0 without any.
// It is up to twice as long as the longest of these. The last bound is that of no limit.
func (d Durations) Quantile(part float64) time.Duration {
	total, below := d.Count(), uint64(0)
	for i, n := range d.Counts {
		if below += n; n > 0 && float64(below) >= part*float64(total) {
			return bound(i)
		}
	}
	return 0
}

// MarshalJSON returns the JSON form: the count, the sum, and the counts that are not 0 by their
// bounds. Durations are text, as in "1.5s".
func (d Durations) MarshalJSON() ([]byte, error) {
	upTo := make(map[string]uint64)
	for i, n := range d.Counts {
		if n > 0 {
			upTo[bound(i).String()] = n
		}
	}
	return json.Marshal(struct {
		Count uint64            `json:"count"`
		Sum   string            `json:"sum"`
		UpTo  map[string]uint64 `json:"upTo,omitempty"`
	}{d.Count(), d.Sum.String(), upTo})
}

// UnmarshalJSON reads the JSON form.
func (d *Durations) UnmarshalJSON(data []byte) (err error) {
	var form struct {
		Sum  string
		UpTo map[string]uint64
	}
	if err := json.Unmarshal(data, &form); err != nil {
		return err
	}
	*d = Durations{}
	if d.Sum, err = time.ParseDuration(form.Sum); err != nil {
		return fmt.Errorf("the sum of durations: %w", err)
	}
	for i := range d.Counts {
		d.Counts[i] = form.UpTo[bound(i).String()]
	}
	return nil
}

// Histogram counts durations that are observed. The zero value is ready.
type Histogram struct {
	sum    atomic.Int64
	counts [size]atomic.Uint64
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) { h.ObserveRun(1, d) }

// ObserveRun counts n durations that are total together, each with their mean.
func (h *Histogram) ObserveRun(n int, total time.Duration) {
	if n <= 0 {
		return
	}
	total = max(total, 0)
	h.counts[index(total/time.Duration(n))].Add(uint64(n))
	h.sum.Add(int64(total))
}

// Durations returns the counts up to now.
func (h *Histogram) Durations() Durations {
	d := Durations{Sum: time.Duration(h.sum.Load())}
	for i := range h.counts {
		d.Counts[i] = h.counts[i].Load()
	}
	return d
}

// bound returns the longest duration that Counts[i] counts, in whole nanoseconds.
func bound(i int) time.Duration { return time.Second << i >> second }

// index returns the index of the count of a duration, which is not negative. A second is a little
// less than 2^30 nanoseconds: so the bits of the number, less 10, are the index or one less.
func index(d time.Duration) int {
	i := max(bits.Len64(uint64(d))-10, 0)
	if i < size-1 && d > bound(i) {
		i++
	}
	return min(i, size-1)
}
