package view

import (
	"math"
	"time"
)

const (
	// latencyGrowth is by how much a class of a Latency is wider than the one
	// before: what it says is exact to 5 %.
	latencyGrowth  = 1.1
	latencyClasses = 256 // up to 1µs · 1.1^255, ten hours
)

// Latency is a histogram of times. Its zero value is empty.
type Latency struct {
	classes [latencyClasses]uint64
	count   uint64
	max     time.Duration
}

// Add counts a time.
func (l *Latency) Add(d time.Duration) {
	class := 0
	if d > time.Microsecond {
		class = min(latencyClasses-1, int(math.Log(float64(d)/float64(time.Microsecond))/math.Log(latencyGrowth)))
	}
	l.classes[class]++
	l.count++
	l.max = max(l.max, d)
}

// Count returns how many times were counted.
func (l *Latency) Count() uint64 { return l.count }

// Max returns the longest time.
func (l *Latency) Max() time.Duration { return l.max }

// Quantile returns a time that the part q of all times does not exceed, 0 if there
// are none.
func (l *Latency) Quantile(q float64) time.Duration {
	rank := uint64(math.Ceil(q * float64(l.count)))
	var below uint64
	for class, n := range l.classes {
		if below += n; below >= rank && n > 0 {
			upper := time.Duration(float64(time.Microsecond) * math.Pow(latencyGrowth, float64(class+1)))
			return min(upper, l.max)
		}
	}
	return 0
}
