package reflector

import (
	"fmt"
	"math"
	"time"
)

// What options may be at least, where they are not 0: less would end every watch, or every
// list, before it can bring anything, or ask a failing server without a pause.
const (
	leastDuration = time.Second
	leastBackoff  = time.Millisecond
)

// Check returns an error that names the first option that cannot be used, as a field of a
// struct that is called name. A reflector with such options does not run. It is for what
// has these options among its own, to say so when they are given.
func (o Options[T]) Check(name string) error {
	refuse := func(field string, value any, remedy string) error {
		return fmt.Errorf("%s.%s is %v: %s", name, field, value, remedy)
	}
	if o.PageSize < 0 {
		return refuse("PageSize", o.PageSize, "give a number of objects, or 0 for 500")
	}
	for _, d := range []struct {
		field    string
		value    time.Duration
		least    time.Duration
		negative bool // means something
		zero     string
	}{
		{"WatchTimeout", o.WatchTimeout, leastDuration, false, "5 minutes"},
		{"Grace", o.Grace, leastDuration, false, "30 s"},
		{"MaxSilence", o.MaxSilence, leastDuration, true, "2 minutes, or less for no limit"},
		{"Heartbeat", o.Heartbeat, leastDuration, false, "10 minutes"},
		{"Backoff.Initial", o.Backoff.Initial, leastBackoff, false, "800 ms"},
		{"Backoff.Max", o.Backoff.Max, leastBackoff, false, "30 s"},
	} {
		if d.value < 0 && !d.negative || d.value > 0 && d.value < d.least {
			return refuse(d.field, d.value, fmt.Sprintf("give %v or more, or 0 for %s", d.least, d.zero))
		}
	}
	if j := o.Backoff.Jitter; math.IsNaN(j) || math.IsInf(j, 0) || j > 1 {
		return refuse("Backoff.Jitter", j, "give a part between 0 and 1, 0 for 0.5, or less for none")
	}
	return nil
}

// sum returns a+b, or the longest duration if that is longer. Both are positive.
func sum(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// part returns as much of d, or the longest duration if that is longer.
func part(d time.Duration, factor float64) time.Duration {
	if product := float64(d) * factor; product < math.MaxInt64 {
		return time.Duration(product)
	}
	return math.MaxInt64
}
