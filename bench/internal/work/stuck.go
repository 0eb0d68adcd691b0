package work

import (
	"context"

	"github.com/tidings-go/tidings/bench/internal/feed"
)

// stuck is updates of a few keys while one handler of two does not return.
type stuck struct{}

func (stuck) Name() string { return "stuck handler" }

func (stuck) Cases(s Size) []Case {
	return []Case{{
		Work: "stuck handler", Seed: seed, Objects: pick(s, 100, 1_000, 10_000), Events: pick(s, 20_000, 100_000, 10_000_000),
		HeapLimit: pick[uint64](s, 1<<30, 256<<20, 2<<30),
	}}
}

// marks are the numbers of events, in whole rounds, after which the heap is looked at.
func marks(events, round int) []int {
	var at []int
	for _, part := range []int{100, 20, 4, 1} {
		if n := events / part / round * round; n > 0 && (len(at) == 0 || n > at[len(at)-1]) {
			at = append(at, n)
		}
	}
	return at
}

func (stuck) Run(ctx context.Context, r Run) (Metrics, error) {
	pods := feed.Pods(r.Seed, r.Objects)
	round := func(f *feed.Feed, done int) [][]feed.Event { return updates(f, done, r.round(), r.Objects) }
	return growth{
		run: r, at: marks(r.Events, r.round()), perThing: 1, things: "updates", kept: "kept per update",
		feed: func() (*feed.Feed, rounds) { return feed.New(pods), round },
	}.metrics(ctx)
}
