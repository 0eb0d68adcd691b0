package work

import "time"

// Better says in which direction a metric is better.
type Better string

// The directions.
const (
	// Lower is better for costs.
	Lower Better = "lower"
	// Higher is better for rates.
	Higher Better = "higher"
)

// Metric is one figure of a run.
type Metric struct {
	// Name says what was measured.
	Name string
	// Unit is "s" for seconds, "B" for bytes, and otherwise what is counted.
	Unit string
	// Value is the figure, in the unit.
	Value float64
	// Better is the direction in which it is better.
	Better Better
}

// Metrics are the figures of a run, in the order in which they are shown.
type Metrics []Metric

// add appends a cost.
func (m *Metrics) add(name, unit string, value float64) {
	*m = append(*m, Metric{Name: name, Unit: unit, Value: value, Better: Lower})
}

// seconds appends a cost in time: of n things, what each takes.
func (m *Metrics) seconds(name string, all time.Duration, n int) {
	m.add(name, "s", all.Seconds()/float64(n))
}

// bytes appends a cost in memory: of n things, what each takes. Where after is less than
// before, it is 0.
func (m *Metrics) bytes(name string, after, before uint64, n int) {
	m.add(name, "B", float64(max(after, before)-before)/float64(n))
}

// rate appends how many things happen in a second.
func (m *Metrics) rate(name string, n int, in time.Duration) {
	*m = append(*m, Metric{Name: name, Unit: "/s", Value: float64(n) / in.Seconds(), Better: Higher})
}
