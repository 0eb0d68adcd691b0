package debug

import (
	"math"
	"strings"
	"time"

	"github.com/tidings-go/tidings/health"
)

const (
	// historyPeriod is the time between two points of the history, and historyPoints the number
	// that is kept: an hour.
	historyPeriod = historyEvery * samplePeriod
	historyPoints = 360
)

// history keeps the figures of the last hour. A counter is kept as its growth since the point
// before. It has at most historyPoints values of four bytes for each figure.
type history struct {
	times  []time.Time // of the points
	tracks map[string]*track
}

// track has the figures of an informer, a controller, a Lease, a group or the process. Its series
// end at the last point.
type track struct {
	last   sample
	series map[string][]float32
}

// counters are the figures that only grow, and counterPrefix begins the names of others.
var counters = map[string]bool{
	"delivered": true, "calls": true, "errors": true, "lists anew": true,
	"watches anew": true, "lag sum": true, "lag count": true, "terms": true, "in": true, "out": true,
}

const counterPrefix = "delivered to "

func isCounter(figure string) bool {
	return counters[figure] || strings.HasPrefix(figure, counterPrefix)
}

// pushed appends a value to the last historyPoints of values.
func pushed[V any](all []V, value V) []V {
	if cap(all) == 0 {
		all = make([]V, 0, historyPoints)
	}
	if len(all) == historyPoints {
		copy(all, all[1:])
		all = all[:historyPoints-1]
	}
	return append(all, value)
}

// add adds a point. It drops what is gone.
func (h *history) add(at time.Time, all map[string]sample) {
	h.times = pushed(h.times, at)
	if h.tracks == nil {
		h.tracks = map[string]*track{}
	}
	for name := range h.tracks {
		if all[name] == nil {
			delete(h.tracks, name)
		}
	}
	for name, figures := range all {
		t := h.tracks[name]
		if t == nil {
			t = &track{series: map[string][]float32{}}
			h.tracks[name] = t
		}
		t.add(figures)
	}
}

func (t *track) add(now sample) {
	for figure := range t.series {
		if _, ok := now[figure]; !ok {
			delete(t.series, figure)
		}
	}
	for figure, value := range now {
		if isCounter(figure) {
			before, ok := t.last[figure]
			if !ok {
				before = value // what was counted before the first point has no time
			}
			value = max(0, value-before)
		}
		t.series[figure] = pushed(t.series[figure], float32(value))
	}
	t.last = now
}

// Series are values of the history at intervals of ten seconds, the newest last. A point without a
// value is NaN.
type Series []float64

// of returns the series of a figure of a track; of a name that ends in a space, as "informer ", the
// series of all tracks whose names begin with it, joined. The values of a counter are per second.
func (h *history) of(of, figure string, join func(a, b float64) float64) Series {
	tracks := h.tracks
	if t := tracks[of]; t != nil {
		tracks = map[string]*track{of: t}
	}
	var sum Series
	for name, t := range tracks {
		values := t.series[figure]
		if len(values) == 0 || !isOf(name, of) {
			continue
		}
		if len(sum) < len(values) {
			longer := make(Series, len(values))
			for i := range longer {
				longer[i] = math.NaN()
			}
			copy(longer[len(values)-len(sum):], sum)
			sum = longer
		}
		for i, value := range values {
			at := &sum[len(sum)-len(values)+i]
			v := float64(value)
			if isCounter(figure) {
				v /= historyPeriod.Seconds()
			}
			if math.IsNaN(*at) {
				*at = v
			} else {
				*at = join(*at, v)
			}
		}
	}
	return sum
}

// isOf reports whether a track has a name, or one that begins with a name that ends in a space.
func isOf(name, of string) bool {
	return name == of || strings.HasSuffix(of, " ") && strings.HasPrefix(name, of)
}

func add(a, b float64) float64 { return a + b }

func largest(a, b float64) float64 { return max(a, b) }

// quotient divides the values of two series of one length. A division by zero is no value.
func quotient(a, b Series) Series {
	for i := range a {
		if b[i] == 0 {
			a[i] = math.NaN()
		} else {
			a[i] /= b[i]
		}
	}
	return a
}

// behind returns how long ago the newest point is at which all notifications that wait for a handler
// were still to come.
func (h *history) behind(of string, handler health.Handler) time.Duration {
	t := h.tracks[of]
	if t == nil {
		return 0
	}
	pending, grown := t.series["pending of "+handler.Name], t.series[counterPrefix+handler.Name]
	delivered := t.last[counterPrefix+handler.Name]
	oldest := time.Time{}
	for i := len(pending) - 1; i >= 0 && delivered+float64(pending[i]) > float64(handler.Delivered); i-- {
		oldest = h.times[len(h.times)-len(pending)+i]
		delivered -= float64(grown[i])
	}
	if oldest.IsZero() {
		return 0
	}
	return time.Since(oldest)
}
