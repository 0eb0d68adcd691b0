package work

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
)

// churn is objects that are created and deleted, each under a name of its own, while one
// handler of two does not return.
type churn struct{}

func (churn) Name() string { return "churn" }

func (churn) Cases(s Size) []Case {
	return []Case{{
		Work: "churn", Seed: seed, Objects: pick(s, 200, 1_000, 10_000), Events: pick(s, 5_000, 25_000, 1_000_000),
		HeapLimit: pick[uint64](s, 1<<30, 256<<20, 4<<30),
	}}
}

func (churn) Run(ctx context.Context, r Run) (Metrics, error) {
	pods := feed.Pods(r.Seed, r.Objects)
	return growth{
		// Every lifetime is two events.
		run: r, at: marks(2*r.Events, r.round()), perThing: 2, things: "lifetimes", kept: "kept per unseen lifetime",
		feed: func() (*feed.Feed, rounds) { return feed.New(pods), newLives(r.Objects, r.round()).next },
	}.metrics(ctx)
}

// lives makes objects that come and go.
type lives struct {
	objects int // of the initial set
	round   int // events
	made    int
}

func newLives(objects, round int) *lives { return &lives{objects: objects, round: round} }

// next makes the batches of a round: objects are added and, in the batch after, deleted.
func (l *lives) next(f *feed.Feed, _ int) [][]feed.Event {
	var batches [][]feed.Event
	var young []*corev1.Pod
	for events := 0; events < l.round; {
		var batch []feed.Event
		for range batchSize {
			l.made++
			e := f.Add(l.made%l.objects, fmt.Sprintf("short-lived-%d", l.made))
			batch, young = append(batch, e), append(young, e.Object)
		}
		var ends []feed.Event
		for _, pod := range young {
			ends = append(ends, f.Delete(pod))
		}
		young = young[:0]
		batches = append(batches, batch, ends)
		events += len(batch) + len(ends)
	}
	return batches
}
