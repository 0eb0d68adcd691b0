package bench

import (
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// BenchmarkFanOut is updates from memory to handlers that do next to nothing: first as fast as
// the informer takes them, then one at a time.
func BenchmarkFanOut(b *testing.B) {
	n, paced := pick(100, 1_000, 10_000), pick(20, 200, 3_000)
	notifications := pick(1, 100_000, 4_000_000)
	for _, handlers := range []int{1, 10, 50, 200} {
		// About as many notifications for any number of handlers, in whole rounds.
		events := min(max(notifications/handlers/roundOf(n), 1), 80) * roundOf(n)
		name := fmt.Sprintf("pods=%d/handlers=%d", n, handlers)
		onStacks(b, name, nil, stack.All(), func(b *testing.B, s stack.Stack, _ stack.Target) {
			all := pods(n)
			benchmarkNotifications(b, s, all, handlers, events)
			benchmarkLatency(b, s, all, handlers, paced)
		})
	}
}

// benchmarkNotifications measures rounds of updates, but not how they are made.
func benchmarkNotifications(
	b *testing.B, s stack.Stack, pods []*corev1.Pod, handlers, events int,
) {
	f := feed.New(pods)
	counters, handle := newCounters(handlers)
	made, err := s.FromMemory(f, stack.Options{})
	informer := start(b, made, err, handle...)
	var used measure.Usage
	round := roundOf(len(pods))
	for sent := 0; sent < events; sent += round {
		batches := updates(f, sent, round, len(pods))
		used.Add(measure.Of(b, func() { send(b, f, batches, round, counters...) }))
	}
	informer.stop()
	for i, c := range counters {
		if n, want := int(c.n.Load()), len(pods)+events; n != want {
			b.Fatalf("handler %d has %d notifications, want %d", i, n, want)
		}
	}
	used.Report(b, handlers*events, "notification")
}

// benchmarkLatency measures the time from the store, where an index function is the first to see
// a new state, to the call of each handler, with updates a millisecond apart.
func benchmarkLatency(b *testing.B, s stack.Stack, pods []*corev1.Pod, handlers, paced int) {
	f := feed.New(pods)
	events := make([]feed.Event, paced)
	for i := range events {
		events[i] = f.Update(i % len(pods))
	}
	stored := newStoreTimes(b, events)
	counters, handle := newCounters(handlers)
	took := make([][]time.Duration, handlers)
	for i, c := range counters {
		c.want.Store(int64(paced))
		took[i] = make([]time.Duration, 0, paced)
		handle[i] = func(change stack.Change, _, after tidings.Object) {
			if change == stack.Updated {
				took[i] = append(took[i], stored.since(after))
				c.count()
			}
		}
	}
	indexes := map[string]func(tidings.Object) []string{"stored": stored.index}
	made, err := s.FromMemory(f, stack.Options{Indexes: indexes})
	informer := start(b, made, err, handle...)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for i := range events {
		<-tick.C
		if err := f.Send(b.Context(), events[i:i+1]); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range counters {
		c.await(b)
	}
	informer.stop()
	if stored.early.Load() {
		b.Fatal("a handler was notified of a state before the store had it")
	}
	all := slices.Concat(took...)
	b.ReportMetric(percentile(all, 50), "store-to-handler-p50-ns")
	b.ReportMetric(percentile(all, 99), "store-to-handler-p99-ns")
}

// storeTimes records when the store first saw each of a row of versions.
type storeTimes struct {
	start time.Time
	first int            // version
	at    []atomic.Int64 // nanoseconds after start, 0 while unseen
	early atomic.Bool    // a handler was notified before the store was
}

func newStoreTimes(b *testing.B, events []feed.Event) *storeTimes {
	first, err := strconv.Atoi(events[0].Version)
	if err != nil {
		b.Fatal(err)
	}
	return &storeTimes{start: time.Now(), first: first, at: make([]atomic.Int64, len(events))}
}

// index is an index function without values.
func (s *storeTimes) index(o tidings.Object) []string {
	if at := s.of(o); at != nil {
		at.CompareAndSwap(0, int64(time.Since(s.start)))
	}
	return nil
}

// of returns the time of an object's version, nil for those of the initial set.
func (s *storeTimes) of(o tidings.Object) *atomic.Int64 {
	version, err := strconv.Atoi(o.GetResourceVersion())
	if err != nil || version < s.first || version >= s.first+len(s.at) {
		return nil
	}
	return &s.at[version-s.first]
}

// since returns how long ago the store saw the object.
func (s *storeTimes) since(o tidings.Object) time.Duration {
	now := time.Since(s.start)
	at := s.of(o)
	if at == nil || at.Load() == 0 {
		s.early.Store(true)
		return 0
	}
	return now - time.Duration(at.Load())
}

// percentile returns the nanoseconds that p percent do not exceed, by nearest rank. It sorts all.
func percentile(all []time.Duration, p int) float64 {
	slices.Sort(all)
	return float64(all[max((len(all)*p+99)/100, 1)-1])
}
