package view

import (
	"fmt"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/charmbracelet/x/ansi"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/see/format"
)

// rateWindow is the time over which a Tally averages its rate.
const rateWindow = 3 * time.Second

// TypeCount counts the changes to the objects of one type.
type TypeCount struct {
	// Of is the type.
	Of Type
	// Initial counts the objects of the initial list, the other fields the changes after it.
	Initial, Added, Updated, Deleted int64
}

// Live returns the number of objects that exist according to the changes.
func (c TypeCount) Live() int64 { return c.Initial + c.Added - c.Deleted }

func (c *TypeCount) add(other TypeCount) {
	c.Initial += other.Initial
	c.Added += other.Added
	c.Updated += other.Updated
	c.Deleted += other.Deleted
}

// Tally counts changes by type. It may be used from any goroutine.
type Tally struct {
	mu      sync.Mutex // guards the rest
	counts  []TypeCount
	samples []rateSample
}

type rateSample struct {
	at      time.Time
	changes int64
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
		counts := &t.counts[i]
		switch {
		case counts.Of != c.Of:
		case c.Initial:
			counts.Initial++
		case c.Event == tidings.Added:
			counts.Added++
		case c.Event == tidings.Updated:
			counts.Updated++
		case c.Event == tidings.Deleted:
			counts.Deleted++
		}
	}
}

// Counts returns the counts of all types.
func (t *Tally) Counts() []TypeCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]TypeCount(nil), t.counts...)
}

// Rate returns the changes per second of the last seconds. It measures between its own calls.
func (t *Tally) Rate(now time.Time) float64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var total TypeCount
	for _, counts := range t.counts {
		total.add(counts)
	}
	changes := total.Added + total.Updated + total.Deleted
	t.samples = append(t.samples, rateSample{now, changes})
	for len(t.samples) > 2 && now.Sub(t.samples[1].at) >= rateWindow {
		t.samples = t.samples[1:]
	}
	elapsed := now.Sub(t.samples[0].at).Seconds()
	if elapsed <= 0 {
		return 0
	}
	return float64(changes-t.samples[0].changes) / elapsed
}

// Table renders the counts of types, with their total if there are several.
func Table(counts []TypeCount, p Palette) string {
	var names []string
	var total TypeCount
	width := 0
	for _, c := range counts {
		name := Printable(strings.TrimPrefix(c.Of.Context+" "+c.Of.Plural, " "))
		names, width = append(names, name), max(width, ansi.StringWidth(name))
		total.add(c)
	}
	if len(counts) > 1 {
		names, counts = append(names, "total"), append(counts, total)
		width = max(width, len("total"))
	}
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%*s\tobjects\tadded\tupdated\tdeleted\t\n", width, "")
	for i, c := range counts {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t\n",
			padded(names[i], width), format.Int(c.Live()), format.Int(c.Added), format.Int(c.Updated),
			format.Int(c.Deleted))
	}
	w.Flush() //nolint:errcheck // a strings.Builder returns no error
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	lines[0] = p.Dim(lines[0])
	if last := len(lines) - 1; last > 1 {
		lines[last] = p.Bold(lines[last])
	}
	return strings.Join(lines, "\n") + "\n"
}
