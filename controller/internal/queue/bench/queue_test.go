package bench

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	"github.com/tidings-go/tidings/controller/internal/queue"
)

const (
	flows      = 50
	maxReasons = 8 // of a key
)

func keys(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("namespace-%d/object-%d", i%flows, i)
	}
	return all
}

// subject is a queue that the benchmarks drive.
type subject interface {
	add(key string, reason int)
	work(worker int) bool // takes a key and ends its run
	queued() int
	close()
}

// tidings has a buffer for the reasons of each worker.
type tidings struct {
	q       *queue.Queue[int]
	buffers [][]queue.Counted[int]
}

func newTidings(workers int) subject {
	s := tidings{queue.New(queue.Options[int]{Workers: workers}), nil}
	for range workers {
		s.buffers = append(s.buffers, make([]queue.Counted[int], 0, maxReasons))
	}
	return s
}

func (s tidings) add(key string, reason int) { s.q.Add(key, queue.Ask[int]{Reason: reason}) }
func (s tidings) queued() (n int) {
	for _, band := range s.q.Stats().Queued {
		n += band
	}
	return n
}
func (s tidings) close() { s.q.Close() }
func (s tidings) work(worker int) bool {
	item, ok := s.q.Get(worker, s.buffers[worker])
	if ok {
		if err := s.q.Done(item, queue.Outcome{}); err != nil {
			panic(err)
		}
	}
	return ok
}

// other is a queue with the interface of workqueue, which keeps no reasons.
type other struct {
	workqueue.TypedRateLimitingInterface[string]
}

func (s other) add(key string, _ int) { s.Add(key) }
func (s other) queued() int           { return s.Len() }
func (s other) close()                { s.ShutDown() }
func (s other) work(int) bool {
	key, shutdown := s.Get()
	if !shutdown {
		s.Forget(key)
		s.Done(key)
	}
	return !shutdown
}

var subjects = []struct {
	name string
	make func(workers int) subject
}{
	{"tidings", newTidings},
	{"workqueue", func(int) subject {
		limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
		return other{workqueue.NewTypedRateLimitingQueue(limiter)}
	}},
	{"priorityqueue", func(int) subject {
		return other{priorityqueue.New("bench", func(o *priorityqueue.Opts[string]) {
			o.MetricProvider = noMetrics{}
		})}
	}},
}

// noMetrics makes metrics that count nothing, as those of a queue without a name do.
type noMetrics struct{}

type noMetric struct{}

func (noMetric) Inc()            {}
func (noMetric) Dec()            {}
func (noMetric) Set(float64)     {}
func (noMetric) Observe(float64) {}

func (noMetrics) NewDepthMetric(string) workqueue.GaugeMetric            { return noMetric{} }
func (noMetrics) NewAddsMetric(string) workqueue.CounterMetric           { return noMetric{} }
func (noMetrics) NewLatencyMetric(string) workqueue.HistogramMetric      { return noMetric{} }
func (noMetrics) NewWorkDurationMetric(string) workqueue.HistogramMetric { return noMetric{} }
func (noMetrics) NewUnfinishedWorkSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noMetric{}
}
func (noMetrics) NewRetriesMetric(string) workqueue.CounterMetric { return noMetric{} }
func (noMetrics) NewLongestRunningProcessorSecondsMetric(string) workqueue.SettableGaugeMetric {
	return noMetric{}
}

// BenchmarkAddGetDone adds 100,000 keys. Workers take and end all of them.
func BenchmarkAddGetDone(b *testing.B) {
	all := keys(100_000)
	for _, workers := range []int{1, 16} {
		for _, s := range subjects {
			b.Run(fmt.Sprintf("workers=%d/queue=%s", workers, s.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					drive(s.make(workers), workers, all)
				}
				n := float64(b.N * len(all))
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/key")
			})
		}
	}
}

func drive(s subject, workers int, keys []string) {
	var done, group sync.WaitGroup
	done.Add(len(keys))
	for w := range workers {
		group.Go(func() {
			for s.work(w) {
				done.Done()
			}
		})
	}
	for _, key := range keys {
		s.add(key, 1)
	}
	done.Wait()
	s.close()
	group.Wait()
}

// BenchmarkMemory measures the heap of queued keys of 50 flows. The keys themselves are not
// counted. Run it with -benchtime 1x.
func BenchmarkMemory(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
		all := keys(n)
		for _, reasons := range []int{1, 3} {
			for _, s := range subjects {
				b.Run(fmt.Sprintf("keys=%d/reasons=%d/queue=%s", n, reasons, s.name),
					func(b *testing.B) {
						b.ReportMetric(bytesPerKey(b, s.make(1), all, reasons), "B/key")
						b.ReportMetric(0, "ns/op")
					})
			}
		}
	}
}

func bytesPerKey(b *testing.B, s subject, all []string, reasons int) float64 {
	before := heap()
	for _, key := range all {
		for r := range reasons {
			s.add(key, r)
		}
	}
	if n := s.queued(); n != len(all) {
		b.Fatalf("%d keys are queued, want %d", n, len(all))
	}
	after := heap()
	s.close()
	runtime.KeepAlive(all)
	return (after - before) / float64(len(all))
}

// heap returns the bytes of the objects that are left after a collection.
func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
