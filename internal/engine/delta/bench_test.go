package delta_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/tidings-go/tidings/internal/engine/delta"
)

// benchStore is a store as the consumer of a benchmark has it: a table for Get, a sorted slice
// for Prefix.
type benchStore struct {
	byKey  map[string]*object
	sorted []*object
}

func newBenchStore(n int) *benchStore {
	s := &benchStore{byKey: make(map[string]*object, n)}
	for i := range n {
		o := state(fmt.Sprintf("namespace-%02d/deployment-7c5ddbdf54-%05d", i*50/max(n, 1), i), 100_000+i, fmt.Sprintf("0f0b9d7e-6d7c-4b0a-9a53-%012d", i))
		s.byKey[o.key] = o
		s.sorted = append(s.sorted, o)
	}
	return s
}

func (s *benchStore) Get(key string) (*object, bool) { o, ok := s.byKey[key]; return o, ok }

func (s *benchStore) Prefix(prefix string) iter.Seq2[string, *object] {
	return func(yield func(string, *object) bool) {
		from, _ := slices.BinarySearchFunc(s.sorted, prefix, func(o *object, p string) int { return strings.Compare(o.key, p) })
		for _, o := range s.sorted[from:] {
			if !strings.HasPrefix(o.key, prefix) || !yield(o.key, o) {
				return
			}
		}
	}
}

func (s *benchStore) known() delta.Known[*object] { return s }

func benchQueue(b *testing.B, s *benchStore, o delta.Options[*object]) *delta.Queue[*object] {
	o.Known, o.Describe, o.Compare = s.known, describe, delta.CompareDecimal
	q, err := delta.New(o)
	if err != nil {
		b.Fatal(err)
	}
	return q
}

// BenchmarkPushPop is the steady state: updates of known objects, pushed and popped in batches.
// ns/change is the figure to read.
func BenchmarkPushPop(b *testing.B) {
	s := newBenchStore(10_000)
	for _, size := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", size), func(b *testing.B) {
			q := benchQueue(b, s, delta.Options[*object]{})
			changes := make([]delta.Event[*object], size)
			for i := range changes {
				known := s.sorted[i*97]
				changes[i] = set(&object{known.key, "999999", known.uid})
			}
			deltas := 0
			process := func(batch *delta.Batch[*object]) { deltas += len(batch.Changes) }
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if err := q.Push(ctx, "", "", changes); err != nil {
					b.Fatal(err)
				}
				if err := q.Pop(ctx, process); err != nil {
					b.Fatal(err)
				}
			}
			if deltas != b.N*size {
				b.Fatalf("%d deltas of %d changes", deltas, b.N*size)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/change")
		})
	}
}

// BenchmarkReplace lists 50,000 objects: all new, all unchanged, one in a hundred changed.
// B/object and ns/object are the figures to read; the items, which the producer makes, are not
// counted.
func BenchmarkReplace(b *testing.B) {
	const n = 50_000
	full, empty := newBenchStore(n), newBenchStore(0)
	for _, test := range []struct {
		name    string
		known   *benchStore
		changed func(i int) bool
	}{
		{"new", empty, func(int) bool { return false }},
		{"unchanged", full, func(int) bool { return false }},
		{"changed=1%", full, func(i int) bool { return i%100 == 0 }},
	} {
		b.Run(test.name, func(b *testing.B) {
			made := make([]delta.Item[*object], n)
			for i, o := range full.sorted {
				if test.changed(i) {
					o = &object{o.key, "999999", o.uid}
				}
				made[i] = item(o)
			}
			ctx := context.Background()
			var before, after runtime.MemStats
			var bytes uint64
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				q := benchQueue(b, test.known, delta.Options[*object]{})
				list := slices.Clone(made)
				runtime.ReadMemStats(&before)
				b.StartTimer()
				if err := q.Replace(ctx, "", "1000000", list, delta.ReplaceOptions{}); err != nil {
					b.Fatal(err)
				}
				if err := q.Pop(ctx, func(*delta.Batch[*object]) {}); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				runtime.ReadMemStats(&after)
				bytes += after.TotalAlloc - before.TotalAlloc
				b.StartTimer()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/object")
			b.ReportMetric(float64(bytes)/float64(b.N*n), "B/object")
		})
	}
}

func BenchmarkCompareDecimal(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		delta.CompareDecimal("1234567890", "1234567891")
	}
}
