package work

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

const (
	// batchSize is how many events a feed hands over at once.
	batchSize = 100
	// largestRound is how many events are waited for together at most, so that no handler
	// that returns falls behind by more.
	largestRound = 5_000
	// patience is how long a workload waits for what has to come.
	patience = 5 * time.Minute
)

// round returns how many events are waited for together: no more than there are objects,
// for two updates of one object that wait in a queue may become one.
func (r Run) round() int { return min(largestRound, r.Objects) }

// running is an informer that runs. Its goroutine ends with stop.
type running struct {
	stack.Informer
	cancel context.CancelFunc
	ended  chan error
}

// begin adds the handlers, runs the informer and waits for its sync.
func begin(ctx context.Context, informer stack.Informer, handlers ...stack.Handler) (*running, error) {
	for _, h := range handlers {
		if err := informer.AddHandler(h); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{Informer: informer, cancel: cancel, ended: make(chan error, 1)}
	go func() { r.ended <- informer.Run(ctx) }()
	wait, done := context.WithTimeout(ctx, patience)
	defer done()
	if err := informer.WaitForSync(wait); err != nil {
		cancel()
		return nil, err
	}
	return r, nil
}

// stop ends the informer and waits for it.
func (r *running) stop() error {
	r.cancel()
	return <-r.ended
}

// fromMemory begins an informer of a feed.
func fromMemory(ctx context.Context, s stack.Stack, f *feed.Feed, o stack.Options, handlers ...stack.Handler) (*running, error) {
	informer, err := s.FromMemory(f, o)
	if err != nil {
		return nil, err
	}
	return begin(ctx, informer, handlers...)
}

// counter is a handler that counts its notifications and can be waited for.
type counter struct {
	told atomic.Int64
	want atomic.Int64
	full chan struct{} // has room for one value
}

func newCounter() *counter { return &counter{full: make(chan struct{}, 1)} }

// one counts a notification.
func (c *counter) one() {
	if c.told.Add(1) == c.want.Load() {
		c.full <- struct{}{}
	}
}

// expect says for which number await waits next. It is to be said while fewer have come.
func (c *counter) expect(n int64) { c.want.Store(n) }

// await waits for the number that is expected.
func (c *counter) await(ctx context.Context) error {
	patient := time.NewTimer(patience)
	defer patient.Stop()
	select {
	case <-c.full:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-patient.C:
		return fmt.Errorf("work: a handler was told %d times within %v, want %d", c.told.Load(), patience, c.want.Load())
	}
}

// handler returns a handler that counts adds, updates and deletes alike.
func (c *counter) handler() stack.Handler {
	return stack.Handler{
		Add:    func(metav1.Object) { c.one() },
		Update: func(_, _ metav1.Object) { c.one() },
		Delete: func(metav1.Object) { c.one() },
	}
}

// handlersOf returns the handlers of counters.
func handlersOf(counters []*counter) []stack.Handler {
	handlers := make([]stack.Handler, len(counters))
	for i, c := range counters {
		handlers[i] = c.handler()
	}
	return handlers
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
func send(ctx context.Context, f *feed.Feed, batches [][]feed.Event, n int, counters ...*counter) error {
	for _, c := range counters {
		c.expect(c.told.Load() + int64(n))
	}
	for _, batch := range batches {
		if err := f.Send(ctx, batch); err != nil {
			return err
		}
	}
	for _, c := range counters {
		if err := c.await(ctx); err != nil {
			return err
		}
	}
	return nil
}

// key returns the key of a pod.
func key(o *corev1.Pod) string { return o.Namespace + "/" + o.Name }
