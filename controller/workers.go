package controller

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/pprof"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/see/histogram"
)

// workers is the pool of goroutines that handle the keys of a run. The queue ends the workers that
// are too many, and end waits for all.
type workers struct {
	queue    *queue.Queue[reason]
	handle   func(queue.Item[reason]) queue.Outcome
	callsCtx context.Context // of the calls, with the labels of the goroutines
	waits    *histogram.Histogram
	logger   *slog.Logger
	group    sync.WaitGroup

	mu    sync.Mutex // guards the rest
	begun bool       // start was called
	ended bool       // no worker starts
	n     int
	alive map[int]bool // the workers that have not left, by number
}

// start starts n workers.
func (w *workers) start(n int) {
	w.mu.Lock()
	w.begun = true
	w.mu.Unlock()
	w.set(n)
}

// set changes the number of workers, between start and end.
func (w *workers) set(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun || w.ended {
		return
	}
	w.n = n
	w.queue.SetWorkers(n)
	for i := range n {
		if !w.alive[i] {
			w.alive[i] = true
			w.group.Go(func() { w.work(i) })
		}
	}
}

// work handles one key after the other.
func (w *workers) work(n int) {
	pprof.SetGoroutineLabels(w.callsCtx)
	var reasons []queue.Counted[reason]
	for {
		item, ok := w.queue.Get(n, reasons[:0])
		switch {
		case ok:
			w.waits.Observe(item.Waited)
			reasons = item.Reasons
			w.step(n, item)
		case w.leaves(n):
			return
		}
	}
}

// step handles an item. If the function ends the goroutine, another one goes on in its place.
func (w *workers) step(n int, item queue.Item[reason]) {
	outcome := queue.Outcome{Result: queue.Retry} // stays if the function ends the goroutine
	returned := false
	defer func() {
		if err := w.queue.Done(item, outcome); err != nil {
			w.logger.Error("the queue is out of step", "key", item.Key, "error", err)
		}
		if !returned {
			w.group.Go(func() { w.work(n) })
		}
	}()
	outcome = w.handle(item)
	returned = true
}

// leaves reports whether a worker has to leave, and records that it leaves. The worker may be
// needed again since the queue sent it away.
func (w *workers) leaves(n int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n < w.n && !w.ended {
		return false
	}
	delete(w.alive, n)
	return true
}

// end lets no worker start. The channel is closed when all have left.
func (w *workers) end() (ended <-chan struct{}) {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.queue.Close()
	all := make(chan struct{})
	go func() {
		w.group.Wait()
		close(all)
	}()
	return all
}

// stragglers names the calls that run.
func (w *workers) stragglers() string {
	var names []string
	for _, k := range w.queue.Keys(queue.Running, 10) {
		names = append(names, fmt.Sprintf("%s for %v", k.Key, k.For.Round(time.Millisecond)))
	}
	return strings.Join(names, ", ")
}

// hungFor returns the time for which no call has begun or ended because all workers are in one, if
// a key waits, or if the workers hung at the last look: the keys that waited may have gone to
// others. The running calls are sorted, the longest first.
func (w *workers) hungFor(stats queue.Stats, running []queue.KeyStats, isHung bool) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if stats.Oldest == "" && !isHung || len(running) == 0 || len(running) < w.n {
		return 0
	}
	return running[len(running)-1].For
}
