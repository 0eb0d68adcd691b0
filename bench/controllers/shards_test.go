package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/tidings-go/tidings/apisim"
)

// division has the figures of the units in a period.
type division struct {
	unowned, double time.Duration // the longest of a unit
	moves           float64       // of a unit, in the mean
	most            float64       // the largest part of a replica at the end, over the mean
}

// shardCase is an event among three replicas.
type shardCase struct {
	name string
	// happens makes the event happen, and returns the number of replicas that are left.
	happens func(w *world, d divider, o *owners, three []*replica) (left int)
	// unowned bounds the longest unowned time with Tidings.
	unowned time.Duration
}

var shardCases = []shardCase{
	{"a fourth one joins", func(w *world, d divider, o *owners, _ []*replica) int {
		d.start(w, o, "r3", "1")
		return 4
	}, time.Second},
	{"one ends in order", func(_ *world, _ divider, o *owners, three []*replica) int {
		o.busiest(three).stop()
		return 2
	}, time.Second},
	{"one is killed", func(w *world, _ divider, o *owners, three []*replica) int {
		o.busiest(three).crash(w)
		return 2
	}, leaseDuration + 2*time.Second},
	{"one has no network for three minutes", func(w *world, _ divider, o *owners, three []*replica) int {
		lost := w.server.Inject(apisim.Match{Host: hostOf(o.busiest(three).name)}, apisim.Drop())
		time.Sleep(3 * time.Minute)
		lost.Lift()
		return 3
	}, leaseDuration + 2*time.Second},
	{"all are replaced, with a surge", func(w *world, d divider, o *owners, three []*replica) int {
		for i, old := range three {
			d.start(w, o, fmt.Sprint("n", i), "2")
			time.Sleep(30 * time.Second)
			old.stop()
			<-old.left
		}
		return 3
	}, time.Second},
}

// TestShards compares ways to divide work among three replicas, and prints their table. It fails
// where slots break the contract of shards.
func TestShards(t *testing.T) {
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "case\tway\tlongest without an owner\twith two\tmoves of a unit\tlargest part")
	for _, c := range shardCases {
		for _, d := range dividers {
			t.Run(strings.ReplaceAll(c.name+"/"+d.name, " ", "_"), func(t *testing.T) {
				t.Setenv("SYSTEM_NAMESPACE", opsNamespace) // where knative's Leases are
				inWorld(t, func(w *world) {
					got := c.measure(w, d)
					fmt.Fprintf(table, "%s\t%s\t%.1f s\t%.1f s\t%.2f\t%.2f × the mean\n", c.name, d.name,
						got.unowned.Seconds(), got.double.Seconds(), got.moves, got.most)
					if d.name == dividers[0].name && (got.unowned > c.unowned || got.double > 0 || got.most > 1.3) {
						t.Errorf("%+v", got)
					}
				})
			})
		}
	}
	if err := table.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
}

func (c shardCase) measure(w *world, d divider) division {
	var o owners
	var three []*replica
	for i := range 3 {
		three = append(three, d.start(w, &o, fmt.Sprint("r", i), "1"))
	}
	settle()
	began := time.Now()
	left := c.happens(w, d, &o, three)
	settle()
	return o.since(began, d.units, left)
}

// since returns the figures of the units since a moment.
func (o *owners) since(began time.Time, units, replicas int) (got division) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	owned := map[string]int{}
	for unit := range units {
		var spans []ownership
		for _, s := range o.all {
			if s.unit == unit && (s.to.IsZero() || !s.to.Before(began)) {
				spans = append(spans, *s)
			}
		}
		slices.SortFunc(spans, func(x, y ownership) int { return x.from.Compare(y.from) })
		covered, last := began, ""
		for _, s := range spans {
			if s.to.IsZero() {
				s.to = now
				owned[s.replica]++
			}
			if last != "" && last != s.replica {
				got.moves += 1 / float64(units)
			}
			got.unowned = max(got.unowned, s.from.Sub(covered))
			if last != "" && s.from.Before(covered) {
				got.double = max(got.double, minTime(covered, s.to).Sub(s.from))
			}
			covered, last = maxTime(covered, s.to), s.replica
		}
		got.unowned = max(got.unowned, now.Sub(covered))
	}
	for _, n := range owned {
		got.most = max(got.most, float64(n*replicas)/float64(units))
	}
	return got
}

// busiest returns the replica that owns the most units.
func (o *owners) busiest(among []*replica) *replica {
	o.mu.Lock()
	defer o.mu.Unlock()
	owned := map[string]int{}
	for _, s := range o.all {
		if s.to.IsZero() {
			owned[s.replica]++
		}
	}
	return slices.MaxFunc(among, func(x, y *replica) int { return owned[x.name] - owned[y.name] })
}

func minTime(x, y time.Time) time.Time {
	return slices.MinFunc([]time.Time{x, y}, time.Time.Compare)
}

func maxTime(x, y time.Time) time.Time {
	return slices.MaxFunc([]time.Time{x, y}, time.Time.Compare)
}
