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
		{view.Bytes(12345), "12 kB"}, {view.Bytes(24 << 20), "24 MB"}, {view.Bytes(3 << 29), "1.5 GB"},
		{view.Short(843 * time.Microsecond), "840µs"}, {view.Short(1234 * time.Microsecond), "1.2ms"},
		{view.Short(212345 * time.Microsecond), "212ms"}, {view.Short(30 * time.Second), "30s"}, {view.Short(3*time.Minute + 2*time.Second), "3m2s"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestLag(t *testing.T) {
	var l view.Lag
	if l.Quantile(0.5) != 0 || l.TakeRecent() != 0 {
		t.Error("an empty Lag has times")
	}
	for i := range 1000 {
		version, took := fmt.Sprint(i), time.Duration(i+1)*time.Millisecond
		if i%2 == 0 {
			l.Written(version, at)
			l.Seen(version, at.Add(took))
		} else {
			l.Seen(version, at.Add(took))
			l.Written(version, at)
		}
	}
	l.Written("lost", at)
	l.Seen("from before", at)
	for q, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := l.Quantile(q); got < want*95/100 || got > want*110/100 {
			t.Errorf("quantile %v is %v, want about %v", q, got, want)
		}
	}
	if first, second := l.TakeRecent(), l.TakeRecent(); first != time.Second || second != 0 {
		t.Errorf("the longest time is %v, then %v", first, second)
	}
	if got := l.Counts(); got != (view.LagCounts{Written: 1001, Seen: 1000}) {
		t.Errorf("counts %+v", got)
	}
	l.Written("very long", at)
	l.Seen("very long", at.Add(1000*time.Hour))
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

func ExampleLines() {
	lines := view.NewLines(view.LinesOptions{})
	fmt.Print(lines.Render(updated(deployment, replicas("5", 3, 3, 1), replicas("6", 5, 3, 2))))
	// Output: 05:06:07.089 ~ deployment shop/web  spec.replicas 3 → 5
}
