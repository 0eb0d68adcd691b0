package bench

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// BenchmarkIdle is many informers of few objects without any change.
func BenchmarkIdle(b *testing.B) {
	n := pick(10, 200, 1_000)
	duration := pick(10*time.Millisecond, time.Second, 10*time.Second)
	name := fmt.Sprintf("informers=%d/handlers=2", n)
	onStacks(b, name, nil, stack.All(), func(b *testing.B, s stack.Stack, _ stack.Target) {
		benchmarkIdle(b, s, n, duration)
	})
}

func benchmarkIdle(b *testing.B, s stack.Stack, n int, duration time.Duration) {
	const objects, handlers = 10, 2
	all := pods(objects)
	heap, stackSize, goroutines := measure.LiveHeap(), measure.StackBytes(), runtime.NumGoroutine()
	resident := measure.ResidentSet(b)
	informers := make([]running, n)
	counters, handle := newCounters(handlers)
	for i := range informers {
		made, err := s.FromMemory(feed.New(all), stack.Options{})
		informers[i] = start(b, made, err, handle...)
	}
	for _, c := range counters {
		if got := int(c.n.Load()); got != n*objects {
			b.Fatalf("a handler has %d notifications, want %d", got, n*objects)
		}
	}
	used := measure.Of(b, func() { time.Sleep(duration) })
	// Each informer is run by one goroutine of the benchmark, which is the stack's own
	// where its factory makes it, so it counts.
	each := func(after, before float64, unit string) {
		b.ReportMetric(max(after-before, 0)/float64(n), unit)
	}
	each(float64(runtime.NumGoroutine()), float64(goroutines), "goroutines/informer")
	each(measure.LiveHeap(), heap, "heap-B/informer")
	each(measure.StackBytes(), stackSize, "stack-B/informer")
	each(measure.ResidentSet(b), resident, "resident-B/informer")
	b.ReportMetric(float64(used.CPU)/used.Wall.Seconds(), "cpu-ns/s")
	for _, informer := range informers {
		if n := informer.Len(); n != objects {
			b.Fatalf("%d objects are cached, want %d", n, objects)
		}
		informer.stop()
	}
}
