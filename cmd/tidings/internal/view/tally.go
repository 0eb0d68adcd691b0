package view

import (
	"sync"
	"time"

	"github.com/tidings-go/tidings"
)

// rateWindow is the time over which a Tally averages its rate.
const rateWindow = 3 * time.Second

// TypeCount is what happened to the objects of one type.
type TypeCount struct {
	// Of is the type.
	Of Type
	// Initial counts the initial set, the others what came after it.
	Initial, Added, Updated, Deleted int64
}

// Live returns how many objects there are, going by what was told.
func (c TypeCount) Live() int64 { return c.Initial + c.Added - c.Deleted }

// Events returns how many changes there were after the initial set.
func (c TypeCount) Events() int64 { return c.Added + c.Updated + c.Deleted }

// Tally counts changes by type.
type Tally struct {
	mu     sync.Mutex // guards the rest
	counts []TypeCount
	marks  []rateMark
}

// rateMark is how many changes there were at a time.
type rateMark struct {
	at     time.Time
	events int64
}

// NewTally returns a tally of types, in their order.
func NewTally(types []Type) *Tally {
	t := &Tally{counts: make([]TypeCount, len(types))}
	for i, of := range types {
		t.counts[i].Of = of
	}
	return t
}

// Count counts a change.
func (t *Tally) Count(c Change) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.counts {
		if t.counts[i].Of != c.Of {
			continue
		}
		switch {
		case c.Initial:
			t.counts[i].Initial++
		case c.Event == tidings.Added:
			t.counts[i].Added++
		case c.Event == tidings.Updated:
			t.counts[i].Updated++
		case c.Event == tidings.Deleted:
			t.counts[i].Deleted++
		}
		return
	}
}

// Counts returns the counts of all types.
func (t *Tally) Counts() []TypeCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]TypeCount(nil), t.counts...)
}

// Total returns the sum of all counts.
func (t *Tally) Total() TypeCount {
	var total TypeCount
	for _, c := range t.Counts() {
		total.Initial += c.Initial
		total.Added += c.Added
		total.Updated += c.Updated
		total.Deleted += c.Deleted
	}
	return total
}

// Rate returns how many changes a second there were lately, going by the calls of
// Rate so far.
func (t *Tally) Rate(now time.Time) float64 {
	events := t.Total()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.marks = append(t.marks, rateMark{now, events.Events()})
	for len(t.marks) > 2 && now.Sub(t.marks[1].at) >= rateWindow {
		t.marks = t.marks[1:]
	}
	first := t.marks[0]
	elapsed := now.Sub(first.at).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return float64(events.Events()-first.events) / elapsed
}
