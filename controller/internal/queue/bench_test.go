package queue

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"k8s.io/client-go/util/workqueue"
)

const benchKeys = 100_000

func keysForBench() []string {
	keys := make([]string, benchKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%d/object-%d", i%50, i)
	}
	return keys
}

// subject is a queue that the benchmarks drive.
type subject interface {
	add(key string)
	work(worker int) bool // takes a key and is done with it
	close()
}

type ours struct{ q *Queue[int] }

func (s ours) add(key string) { s.q.Add(key, Ask[int]{Reason: 1}) }
func (s ours) close()         { s.q.Close() }
func (s ours) work(worker int) bool {
	var buf [maxReasons]Counted[int]
	item, ok := s.q.Get(worker, buf[:0])
	if ok {
		if err := s.q.Done(item, Outcome{}); err != nil {
			panic(err)
		}
	}
	return ok
}

type theirs struct {
	q workqueue.TypedRateLimitingInterface[string]
}

func (s theirs) add(key string) { s.q.Add(key) }
func (s theirs) close()         { s.q.ShutDown() }
func (s theirs) work(int) bool {
	key, shutdown := s.q.Get()
	if !shutdown {
		s.q.Forget(key)
		s.q.Done(key)
	}
	return !shutdown
}

var subjects = map[string]func(workers int) subject{
	"tidings": func(workers int) subject { return ours{New(Options[int]{Workers: workers})} },
	"workqueue": func(int) subject {
		limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
		return theirs{workqueue.NewTypedRateLimitingQueue(limiter)}
	},
}

// BenchmarkAddGetDone adds 100,000 keys and has workers be done with all of them.
func BenchmarkAddGetDone(b *testing.B) {
	keys := keysForBench()
	for _, workers := range []int{1, 16} {
		for _, name := range []string{"tidings", "workqueue"} {
			b.Run(fmt.Sprintf("%s/workers=%d", name, workers), func(b *testing.B) {
				for b.Loop() {
					drive(subjects[name](workers), workers, keys)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*benchKeys), "ns/key")
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
		s.add(key)
	}
	done.Wait()
	s.close()
	group.Wait()
}

// BenchmarkMemory measures the heap of 100,000 queued keys, once: a queue of workqueue ends a
// while after it was shut down.
func BenchmarkMemory(b *testing.B) {
	keys := keysForBench()
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for _, name := range []string{"tidings", "workqueue"} {
		b.Run(name, func(b *testing.B) {
			before := heap()
			s := subjects[name](1)
			for _, key := range keys {
				s.add(key)
			}
			b.ReportMetric(float64(heap()-before)/benchKeys, "B/key")
			s.close()
		})
	}
}
