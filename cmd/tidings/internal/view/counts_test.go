package view_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/cmd/tidings/internal/view"
)

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
