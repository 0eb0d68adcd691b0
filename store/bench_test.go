package store

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
)

// The benchmarks hold pods as a cluster has them: 50,000 in 50 namespaces, of 500
// workloads, with keys of 35 bytes. The objects are shared, so that bytes are the store's.
const (
	population = 50_000
	namespaces = 50
	workloads  = 500
)

type pod struct {
	workload string
	node     string
}

func byWorkload(p *pod) ([]string, error) { return []string{p.workload}, nil }
func byLabels(p *pod) ([]string, error) {
	return []string{"app=" + p.workload, "tier=web", "node=" + p.node}, nil
}

func podKeys(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("namespace-%02d/workload-%03d-pod-%07x", i%namespaces, i%workloads, i*7919)
	}
	return keys
}

func pods() []*pod {
	pods := make([]*pod, workloads)
	for i := range pods {
		pods[i] = &pod{fmt.Sprint("workload-", i), fmt.Sprint("node-", i%100)}
	}
	return pods
}

func filled(b *testing.B, indexes map[any]IndexFunc[*pod]) (s *Store[*pod], keys []string, objects []*pod) {
	b.Helper()
	s, err := New(Options[*pod]{Indexes: indexes})
	if err != nil {
		b.Fatal(err)
	}
	keys, objects = podKeys(population), pods()
	s.Update(func(batch *Batch[*pod]) {
		for i, key := range keys {
			batch.Set(key, objects[i%workloads])
		}
	})
	return s, keys, objects
}

var indexSets = []struct {
	name    string
	indexes map[any]IndexFunc[*pod]
}{
	{"none", nil},
	{"workload", map[any]IndexFunc[*pod]{"workload": byWorkload}},
	{"labels", map[any]IndexFunc[*pod]{"labels": byLabels}},
}

func BenchmarkGet(b *testing.B) {
	s, keys, _ := filled(b, nil)
	for name, get := range map[string]func(string) (*pod, bool){
		"store": s.Get, "snapshot": s.Snapshot().Get,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				i = (i + 7919) % population
				if _, ok := get(keys[i]); !ok {
					b.Fatal(keys[i])
				}
			}
		})
	}
	b.Run("absent", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Get("namespace-07/workload-007-pod-no-such")
		}
	})
}

func BenchmarkSet(b *testing.B) {
	for _, o := range indexSets {
		for _, size := range []int{1, 100} {
			b.Run(fmt.Sprintf("indexes=%s/batch=%d", o.name, size), func(b *testing.B) {
				s, keys, objects := filled(b, o.indexes)
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					s.Update(func(batch *Batch[*pod]) {
						for range size {
							i = (i + 7919) % population
							batch.Set(keys[i], objects[i%workloads])
						}
					})
				}
				perObject(b, size)
			})
		}
	}
	b.Run("indexes=workload/batch=100/moved", func(b *testing.B) {
		s, keys, objects := filled(b, indexSets[1].indexes)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			s.Update(func(batch *Batch[*pod]) {
				for range 100 {
					i = i + 7919
					batch.Set(keys[i%population], objects[i%(workloads-1)])
				}
			})
		}
		perObject(b, 100)
	})
	b.Run("indexes=none/batch=100/new-and-gone", func(b *testing.B) {
		s, keys, objects := filled(b, nil)
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			s.Update(func(batch *Batch[*pod]) {
				for range 100 {
					i = (i + 7919) % population
					batch.Delete(keys[i])
					batch.Set(keys[i]+"-"+strconv.Itoa(i&1), objects[0])
					batch.Delete(keys[i] + "-" + strconv.Itoa(i&1))
					batch.Set(keys[i], objects[0])
				}
			})
		}
		perObject(b, 400)
	})
}

func perObject(b *testing.B, n int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/object")
}

func BenchmarkReplace(b *testing.B) {
	for _, o := range indexSets {
		b.Run("indexes="+o.name, func(b *testing.B) {
			s, keys, objects := filled(b, o.indexes)
			b.ReportAllocs()
			for b.Loop() {
				s.Replace("", func(yield func(string, *pod) bool) {
					for i, key := range keys {
						if !yield(key, objects[i%workloads]) {
							return
						}
					}
				})
			}
			perObject(b, population)
		})
	}
}

// BenchmarkMemory reports the memory of the store itself per key, without keys and objects: after
// it was filled, and after every object was updated once or more.
func BenchmarkMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, o := range indexSets {
		b.Run("indexes="+o.name, func(b *testing.B) {
			keys, objects := podKeys(population), pods()
			for b.Loop() {
				before := heap()
				s, err := New(Options[*pod]{Indexes: o.indexes})
				if err != nil {
					b.Fatal(err)
				}
				s.Update(func(batch *Batch[*pod]) {
					for i, key := range keys {
						batch.Set(key, objects[i%workloads])
					}
				})
				b.ReportMetric((heap()-before)/population, "B/key")
				for i := range 2 * population {
					k := i * 7919 % population
					s.Update(func(batch *Batch[*pod]) { batch.Set(keys[k], objects[k%workloads]) })
				}
				b.ReportMetric((heap()-before)/population, "B/key-later")
				runtime.KeepAlive(s)
			}
			runtime.KeepAlive(keys)
		})
	}
}

func listNamespace(b *testing.B, s *Store[*pod]) {
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for range s.Snapshot().Prefix("namespace-07/") {
			n++
		}
		if n != population/namespaces {
			b.Fatal(n)
		}
	}
	perObject(b, population/namespaces)
}

func lookUp(b *testing.B, s *Store[*pod], index, value string, want int) {
	b.ReportAllocs()
	for b.Loop() {
		x, ok := s.Snapshot().Index(index)
		if !ok {
			b.Fatal("no such index")
		}
		n := 0
		for range x.Lookup(value) {
			n++
		}
		if n != want {
			b.Fatal(n)
		}
	}
	perObject(b, want)
}

func BenchmarkNamespace(b *testing.B) {
	s, _, _ := filled(b, nil)
	listNamespace(b, s)
}

func BenchmarkLookup(b *testing.B) {
	s, _, _ := filled(b, indexSets[2].indexes)
	b.Run("100", func(b *testing.B) { lookUp(b, s, "labels", "app=workload-7", population/workloads) })
	b.Run("50000", func(b *testing.B) { lookUp(b, s, "labels", "tier=web", population) })
}

func BenchmarkAll(b *testing.B) {
	s, _, _ := filled(b, nil)
	b.ReportAllocs()
	for b.Loop() {
		for range s.Snapshot().All() {
		}
	}
	perObject(b, population)
}

func BenchmarkSnapshot(b *testing.B) {
	s, _, _ := filled(b, indexSets[1].indexes)
	b.ReportAllocs()
	for b.Loop() {
		_ = s.Snapshot()
	}
}

// BenchmarkAddIndex adds an index to 50,000 objects.
func BenchmarkAddIndex(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		s, _, _ := filled(b, nil)
		b.StartTimer()
		if err := s.AddIndex("workload", byWorkload); err != nil {
			b.Fatal(err)
		}
	}
	perObject(b, population)
}
