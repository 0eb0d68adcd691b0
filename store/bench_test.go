package store

import (
	"fmt"
	"runtime"
	"testing"
)

// The benchmarks store 50,000 things in 50 namespaces, under keys as pods have.
const population = 50_000

func benchKey(i int) string { return fmt.Sprintf("namespace-%d/workload-%d-pod-%d", i%50, i%500, i) }

func byTagOf(t *thing) ([]string, error) { return t.tags, nil }

func newBenchStore(b *testing.B, o Options[*thing]) *Store[*thing] {
	b.Helper()
	s, err := New(o)
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func filled(b *testing.B, o Options[*thing]) (*Store[*thing], []string) {
	b.Helper()
	s := newBenchStore(b, o)
	keys := make([]string, population)
	s.Update(func(batch *Batch[*thing]) {
		for i := range keys {
			keys[i] = benchKey(i)
			batch.Set(keys[i], &thing{name: keys[i], tags: []string{fmt.Sprint(i % 500)}})
		}
	})
	return s, keys
}

func BenchmarkGet(b *testing.B) {
	s, keys := filled(b, Options[*thing]{})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, ok := s.Get(keys[i*7919%population]); !ok {
			b.Fatal("missing")
		}
	}
}

func BenchmarkGetWhileWriting(b *testing.B) {
	s, keys := filled(b, Options[*thing]{})
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.set(keys[i%population], &thing{name: "new"})
			}
		}
	}()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		s.Get(keys[i*7919%population])
	}
	close(stop)
	<-stopped
}

func BenchmarkUpdate(b *testing.B) {
	for _, size := range []int{1, 10, 100} {
		for name, o := range map[string]Options[*thing]{"no index": {}, "one index": {Indexes: map[string]IndexFunc[*thing]{"tag": byTagOf}}} {
			b.Run(fmt.Sprintf("batch of %d, %s", size, name), func(b *testing.B) {
				s, keys := filled(b, o)
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					s.Update(func(batch *Batch[*thing]) {
						for range size {
							i := n * 7919 % population
							batch.Set(keys[i], &thing{name: "new", tags: []string{"5"}})
							n++
						}
					})
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/object")
			})
		}
	}
}

func BenchmarkFill(b *testing.B) {
	keys := make([]string, population)
	for i := range keys {
		keys[i] = benchKey(i)
	}
	b.ReportAllocs()
	shared := &thing{name: "the objects themselves do not count here"}
	var before, after runtime.MemStats
	for b.Loop() {
		s := newBenchStore(b, Options[*thing]{})
		runtime.GC()
		runtime.ReadMemStats(&before)
		s.Update(func(batch *Batch[*thing]) {
			for _, key := range keys {
				batch.Set(key, shared)
			}
		})
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/population, "ns/object")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/population, "heap-B/object")
}

func BenchmarkNamespace(b *testing.B) {
	s, _ := filled(b, Options[*thing]{})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		for range s.Snapshot().Prefix("namespace-7/") {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/object")
}

func BenchmarkLookup(b *testing.B) {
	s, _ := filled(b, Options[*thing]{Indexes: map[string]IndexFunc[*thing]{"tag": byTagOf}})
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		x, err := s.Snapshot().Index("tag")
		if err != nil {
			b.Fatal(err)
		}
		for range x.Lookup("77") {
			n++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/object")
}

func BenchmarkAll(b *testing.B) {
	s, _ := filled(b, Options[*thing]{})
	b.ReportAllocs()
	for b.Loop() {
		for range s.Snapshot().All() {
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/population, "ns/object")
}
