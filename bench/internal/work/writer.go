package work

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// window is how many batches a writer is ahead of its handler at most: client-go's queue
// has no bound of its own.
const window = 10

// writer sends updates as fast as they are taken, but for what window says. One out of
// those under way is a probe: an index function, which sees a new state when the store
// does, tells how long it took from the hand-over.
type writer struct {
	feed    *feed.Feed
	objects int
	sent    int // updates
	told    atomic.Int64
	tokens  chan struct{} // one for each batch that the handler was told of
	probe   atomic.Pointer[probe]
	stop    context.CancelFunc
	ended   chan error

	mu   sync.Mutex // guards took
	took []time.Duration
}

// probe is an update that is under way.
type probe struct {
	version string
	at      time.Time
}

func newWriter(f *feed.Feed, objects int) *writer {
	w := &writer{feed: f, objects: objects, tokens: make(chan struct{}, window)}
	for range window {
		w.tokens <- struct{}{}
	}
	return w
}

// handler returns the handler that the writer watches.
func (w *writer) handler() stack.Handler {
	return stack.Handler{Update: func(_, _ metav1.Object) {
		if w.told.Add(1)%batchSize == 0 {
			w.tokens <- struct{}{}
		}
	}}
}

// stamp is the index function.
func (w *writer) stamp(o metav1.Object) []string {
	p := w.probe.Load()
	if p != nil && p.version == o.GetResourceVersion() && w.probe.CompareAndSwap(p, nil) {
		took := time.Since(p.at)
		w.mu.Lock()
		w.took = append(w.took, took)
		w.mu.Unlock()
	}
	return nil
}

// begin writes until end. What it returns says how many updates the handler has been told
// of since.
func (w *writer) begin(ctx context.Context) (written func() int) {
	ctx, w.stop = context.WithCancel(ctx)
	w.ended = make(chan error, 1)
	go func() { w.ended <- w.run(ctx) }()
	before := w.told.Load()
	return func() int { return int(w.told.Load() - before) }
}

func (w *writer) run(ctx context.Context) error {
	for {
		select {
		case <-w.tokens:
		case <-ctx.Done():
			return nil
		}
		batch := updates(w.feed, w.sent, batchSize, w.objects)[0]
		w.sent += batchSize
		if w.probe.Load() == nil {
			w.probe.Store(&probe{version: batch[batchSize-1].Version, at: time.Now()})
		}
		// A batch that is made is sent, so that every token comes back.
		if err := w.feed.Send(context.WithoutCancel(ctx), batch); err != nil {
			return err
		}
	}
}

// end ends writing and waits until the handler has been told of all of it.
func (w *writer) end() error {
	w.stop()
	err := <-w.ended
	for range window {
		<-w.tokens
	}
	for range window {
		w.tokens <- struct{}{}
	}
	return err
}

// staleness returns how long the probes took since it was last asked; at least one.
func (w *writer) staleness() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	took := w.took
	w.took = nil
	if len(took) == 0 {
		return []time.Duration{0}
	}
	return took
}
