package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts what was run.
type tally struct {
	mu       sync.Mutex // guards the rest
	seeds    int
	lived    time.Duration // virtual time
	writes   int
	events   int            // that handlers were told
	audits   int            // quiet hours
	deletes  int            // deletes that a handler was told of one by one
	replaced int            // objects whose end an update to another UID told
	exact    int            // times that all adds and deletes of a handler were compared
	faults   map[string]int // by name: requests that met it, or times that it happened
}

// add adds what another has counted.
func (t *tally) add(other *tally) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seeds += other.seeds
	t.lived += other.lived
	t.writes += other.writes
	t.events += other.events
	t.audits += other.audits
	t.deletes += other.deletes
	t.replaced += other.replaced
	t.exact += other.exact
	for name, n := range other.faults {
		t.met(name, n)
	}
}

// met counts a fault. The lock is held, or nobody else counts.
func (t *tally) met(name string, n int) {
	if t.faults == nil {
		t.faults = map[string]int{}
	}
	t.faults[name] += n
}

func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := 0
	var each []string
	for _, name := range slices.Sorted(maps.Keys(t.faults)) {
		all += t.faults[name]
		each = append(each, fmt.Sprintf("%s %d", name, t.faults[name]))
	}
	return fmt.Sprintf("%d seeds, %.1f days of virtual time, %d writes, %d events told, %d audits,\n"+
		"%d deletes told and checked, %d ends told by another UID, %d times all adds and deletes of a handler compared one by one,\n"+
		"%d faults met: %s",
		t.seeds, t.lived.Hours()/24, t.writes, t.events, t.audits, t.deletes, t.replaced, t.exact, all, strings.Join(each, ", "))
}
