package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// totals are the figures of all days.
type totals struct {
	mu     sync.Mutex    // guards the rest, except in a world that one goroutine counts
	lived  time.Duration // virtual time
	counts map[string]int
	faults map[string]int // by name: requests that met it, or times that it happened
}

func newTotals() *totals { return &totals{counts: map[string]int{}, faults: map[string]int{}} }

// add adds the numbers of another.
func (t *totals) add(other *totals) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lived += other.lived
	for name, n := range other.counts {
		t.counts[name] += n
	}
	for name, n := range other.faults {
		t.faults[name] += n
	}
}

func (t *totals) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := func(m map[string]int) string {
		var each []string
		for _, name := range slices.Sorted(maps.Keys(m)) {
			each = append(each, fmt.Sprint(m[name], " ", name))
		}
		return strings.Join(each, ", ")
	}
	met := 0
	for _, n := range t.faults {
		met += n
	}
	return fmt.Sprintf("%.1f days of virtual time, %s,\n%d faults met: %s",
		t.lived.Hours()/24, list(t.counts), met, list(t.faults))
}
