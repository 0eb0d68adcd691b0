package bench

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

const (
	// batchSize is the number of events that a feed sends at once.
	batchSize = 100
	// largestRound is the largest number of events that are awaited together, so that no handler
	// that returns falls behind by more.
	largestRound = 5_000
	// waitLimit bounds the waits of a benchmark.
	waitLimit = 5 * time.Minute
)

// roundOf returns how many events are awaited together: no more than there are objects, for
// two updates of one object that wait in a queue may become one.
func roundOf(objects int) int { return min(largestRound, objects) }

// pods returns the first n pods.
func pods(n int) []*corev1.Pod {
	all := make([]*corev1.Pod, n)
	for i := range all {
		all[i] = objects.Pod(i)
	}
	return all
}

// key returns the key of an object.
func key(o tidings.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// running is an informer that runs in a goroutine, which stop ends.
type running struct {
	stack.Informer
	stop func()
}

// start adds the handlers, runs the informer and waits for its sync.
func start(
	b *testing.B, informer stack.Informer, err error, handlers ...stack.Handler,
) running {
	b.Helper()
	for _, h := range handlers {
		if err == nil {
			err = informer.AddHandler(h, tidings.PolicyConflateUpdates)
		}
	}
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- informer.Run(ctx) }()
	wait, done := context.WithTimeout(ctx, waitLimit)
	defer done()
	if err := informer.WaitForSync(wait); err != nil {
		cancel()
		b.Fatal(err)
	}
	return running{informer, func() {
		cancel()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	}}
}

// await waits until a channel has a value or is closed; missing returns the reason for a timeout.
func await(b *testing.B, done <-chan struct{}, missing func() string) {
	b.Helper()
	select {
	case <-done:
	case <-time.After(waitLimit):
		b.Fatalf("after %v: %s", waitLimit, missing())
	}
}

// counter is a handler that counts its notifications.
type counter struct {
	n, want atomic.Int64
	reached chan struct{} // has room for one value
}

// newCounters returns counters and their handlers.
func newCounters(n int) (counters []*counter, handlers []stack.Handler) {
	for range n {
		c := &counter{reached: make(chan struct{}, 1)}
		counters = append(counters, c)
		handlers = append(handlers, func(stack.Change, tidings.Object, tidings.Object) { c.count() })
	}
	return counters, handlers
}

func (c *counter) count() {
	if c.n.Add(1) == c.want.Load() {
		c.reached <- struct{}{}
	}
}

// await waits for the number that was wanted before the notifications began.
func (c *counter) await(b *testing.B) {
	await(b, c.reached, func() string {
		return fmt.Sprintf("a handler has %d notifications, want %d", c.n.Load(), c.want.Load())
	})
}

// updates makes n updates in batches: of the objects from first on, in turn.
func updates(f *feed.Feed, first, n, objects int) [][]feed.Event {
	var batches [][]feed.Event
	for sent := 0; sent < n; {
		batch := make([]feed.Event, 0, min(batchSize, n-sent))
		for range cap(batch) {
			batch = append(batch, f.Update((first+sent)%objects))
			sent++
		}
		batches = append(batches, batch)
	}
	return batches
}

// send sends batches and waits until every counter has n more notifications.
func send(b *testing.B, f *feed.Feed, batches [][]feed.Event, n int, counters ...*counter) {
	b.Helper()
	for _, c := range counters {
		c.want.Store(c.n.Load() + int64(n))
	}
	for _, batch := range batches {
		if err := f.Send(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range counters {
		c.await(b)
	}
}
