package metrics

import (
	"math"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/histogram"
)

// family is a metric with its labels.
type family struct {
	desc    *prometheus.Desc
	counter bool
	// classic reports whether the histogram also has the buckets of classicExponents.
	classic bool
}

// families makes the families of a collector, and lists them.
type families []*family

func (f *families) add(member family, name, help string, labels []string) *family {
	member.desc = prometheus.NewDesc(name, help, labels, nil)
	*f = append(*f, &member)
	return &member
}

func (f *families) gauge(name, help string, labels ...string) *family {
	return f.add(family{}, name, help, labels)
}

func (f *families) counter(name, help string, labels ...string) *family {
	return f.add(family{counter: true}, name, help, labels)
}

func (f *families) histogram(name, help string, labels ...string) *family {
	return f.add(family{}, name, help, labels)
}

func (f *families) classic(name, help string, labels ...string) *family {
	return f.add(family{classic: true}, name, help, labels)
}

// labels are the labels of a metric, by name. They are shared and not written to.
type labels []*dto.LabelPair

// label returns labels with one more. It must come last in the order of names.
func (l labels) label(name, value string) labels {
	value = strings.ToValidUTF8(value, "�")
	return append(slices.Clip(l), &dto.LabelPair{Name: &name, Value: &value})
}

// sample is a metric with one value.
type sample struct {
	*family
	labels labels
	value  float64
}

// Desc returns the description of the metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

// Write writes the metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label = slices.Clip(s.labels)
	if s.counter {
		out.Counter = &dto.Counter{Value: &s.value}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.value}
	}
	return nil
}

// distribution is a metric that is a histogram.
type distribution struct {
	*family
	labels    labels
	durations health.Durations
}

// Desc returns the description of the metric.
func (d *distribution) Desc() *prometheus.Desc { return d.desc }

// Write writes the metric. In schema 0 the bucket i counts the durations from 2^(i-1) to 2^i
// seconds, and the zero bucket all shorter ones.
func (d *distribution) Write(out *dto.Metric) error {
	counts := &d.durations.Counts
	zero, rest := counts[0], counts[1:]
	first := slices.IndexFunc(rest, func(n uint64) bool { return n > 0 })
	h := &dto.Histogram{
		SampleCount: new(d.durations.Count()), SampleSum: new(d.durations.Sum.Seconds()),
		Schema: new(int32(0)), ZeroCount: &zero,
		ZeroThreshold: new(math.Exp2(float64(histogram.Exponent(0)))),
	}
	if first >= 0 {
		for rest = rest[first:]; rest[len(rest)-1] == 0; {
			rest = rest[:len(rest)-1]
		}
		h.PositiveSpan = []*dto.BucketSpan{{
			Offset: new(int32(histogram.Exponent(first + 1))), Length: new(uint32(len(rest))),
		}}
		before := uint64(0)
		for _, n := range rest {
			h.PositiveDelta = append(h.PositiveDelta, int64(n)-int64(before))
			before = n
		}
	}
	if d.classic {
		h.Bucket = classicBuckets(counts[:])
	}
	out.Label, out.Histogram = slices.Clip(d.labels), h
	return nil
}

// The classic buckets end at powers of four, from 61 µs to 64 s.
const firstClassic, lastClassic, classicStep = -14, 6, 2

// classicBuckets returns the classic buckets. Each counts all durations up to its bound.
func classicBuckets(counts []uint64) (buckets []*dto.Bucket) {
	var total uint64
	for i, n := range counts {
		total += n
		e := histogram.Exponent(i)
		if e >= firstClassic && e <= lastClassic && (e-firstClassic)%classicStep == 0 {
			buckets = append(buckets, &dto.Bucket{
				CumulativeCount: new(total), UpperBound: new(math.Exp2(float64(e))),
			})
		}
	}
	return buckets
}
