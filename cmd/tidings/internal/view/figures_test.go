package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{view.Count(0), "0"}, {view.Count(999), "999"}, {view.Count(1000), "1,000"}, {view.Count(1234567), "1,234,567"}, {view.Count(-1234), "-1,234"},
		{view.Counted(1, "object", "objects"), "1 object"}, {view.Counted(2000, "object", "objects"), "2,000 objects"},
		{view.Bytes(12), "12 B"}, {view.Bytes(24 << 20), "24 MB"}, {view.Bytes(3 << 29), "1.5 GB"},
		{view.Short(843 * time.Microsecond), "840µs"}, {view.Short(1234 * time.Microsecond), "1.2ms"},
		{view.Short(212345 * time.Microsecond), "212ms"}, {view.Short(30 * time.Second), "30s"}, {view.Short(3*time.Minute + 2*time.Second), "3m2s"},
		{view.Age(45 * time.Second), "45s"}, {view.Age(12 * time.Minute), "12m"}, {view.Age(3 * time.Hour), "3h"}, {view.Age(96 * time.Hour), "4d"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestLatency(t *testing.T) {
	var l view.Latency
	if l.Quantile(0.5) != 0 {
		t.Error("an empty latency has a median")
	}
	for i := range 1000 {
		l.Add(time.Duration(i+1) * time.Millisecond)
	}
	for _, c := range []struct {
		q    float64
		want time.Duration
	}{{0.5, 500 * time.Millisecond}, {0.99, 990 * time.Millisecond}, {1, time.Second}} {
		if got := l.Quantile(c.q); got < c.want*95/100 || got > c.want*110/100 {
			t.Errorf("quantile %v is %v, want about %v", c.q, got, c.want)
		}
	}
	if l.Max() != time.Second || l.Count() != 1000 {
		t.Errorf("max %v of %d", l.Max(), l.Count())
	}
	l.Add(-time.Second)
	l.Add(1000 * time.Hour)
}

func TestLedgerMatchesInEitherOrder(t *testing.T) {
	l := view.NewLedger()
	if _, some := l.TakeWorst(); some {
		t.Error("an empty ledger has a lag")
	}
	l.Made("1", at)
	l.Seen("1", at.Add(3*time.Millisecond))
	l.Seen("2", at.Add(9*time.Millisecond))
	l.Made("2", at.Add(8*time.Millisecond))
	l.Made("3", at)
	l.Seen("from before", at)
	if worst, some := l.TakeWorst(); !some || worst != 3*time.Millisecond {
		t.Errorf("worst %v, %v", worst, some)
	}
	if _, some := l.TakeWorst(); some {
		t.Error("the same lag twice")
	}
	if got := l.Counts(); got != (view.LedgerCounts{Made: 3, Seen: 2}) {
		t.Errorf("counts %+v", got)
	}
}

func TestTallyAndTable(t *testing.T) {
	tally := view.NewTally([]view.Type{pods, deployment})
	count := func(n int, c view.Change) {
		for range n {
			tally.Count(c)
		}
	}
	count(1200, view.Change{Of: pods, Event: tidings.Added, Initial: true})
	count(30, view.Change{Of: pods, Event: tidings.Added})
	count(4, view.Change{Of: pods, Event: tidings.Deleted})
	count(70, view.Change{Of: deployment, Event: tidings.Updated})
	want := "" +
		"               objects  added  updated  deleted\n" +
		"  pods           1,226     30        0        4\n" +
		"  deployments        0      0       70        0\n" +
		"  total          1,226     30       70        4\n"
	if got := view.Table(tally.Counts(), view.Palette{}); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRateIsThatOfTheLastSeconds(t *testing.T) {
	tally := view.NewTally([]view.Type{pods})
	for second := range 20 {
		rate := tally.Rate(at.Add(time.Duration(second) * time.Second))
		if second > 10 && (rate < 9 || rate > 11) {
			t.Errorf("after %d s the rate is %v, want 10", second, rate)
		}
		for range 10 {
			tally.Count(view.Change{Of: pods, Event: tidings.Updated})
		}
	}
}

func TestStatusLine(t *testing.T) {
	status := view.Status{Types: 7, Objects: 2693, Version: "5312", Lag: 1200 * time.Microsecond, HasLag: true, Rate: 49.6, Heap: 24 << 20, Left: 12 * time.Second}
	if got, want := status.Line(view.Palette{}), "── 7 types · 2,693 objects · RV 5312 · lag 1.2ms · 50 events/s · heap 24 MB · 12s left"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	status = view.Status{Types: 1, Objects: 1, Trouble: "pods: Backoff"}
	if got, want := status.Line(view.Palette{}), "── 1 type · 1 object · 0 events/s · heap 0 B · pods: Backoff"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func ExampleLines() {
	lines := view.NewLines(view.LinesOptions{})
	fmt.Print(lines.Render(updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 3, 2))))
	// Output: 05:06:07.089 ~ deployment shop/web  spec.replicas 3 → 5
}
