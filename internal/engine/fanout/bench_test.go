package fanout

import (
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// cpuTime returns the processor time that this process has used.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// updates returns a batch of updates of different keys.
func updates(n int) []change.Change[*object] {
	batch := make([]change.Change[*object], n)
	for i := range batch {
		o := &object{uid: "u", state: i}
		batch[i] = change.Change[*object]{Type: change.Updated, Key: "key-" + strconv.Itoa(i), Old: o, New: o}
	}
	return batch
}

// BenchmarkNotification is the processor time of one notification to one
// handler, publisher included, in batches of several sizes. Batches of 1 that
// find every handler idle cost the wake-ups; batches of 100 are those of a busy watch.
func BenchmarkNotification(b *testing.B) {
	for _, handlers := range []int{1, 10, 50, 200} {
		for _, size := range []int{1, 100} {
			b.Run(fmt.Sprintf("handlers=%d/batch=%d", handlers, size), func(b *testing.B) {
				benchmarkNotification(b, handlers, size)
			})
		}
	}
}

func benchmarkNotification(b *testing.B, handlers, size int) {
	l := started(Options[*object]{Describe: describe})
	defer l.Close()
	var seen sync.WaitGroup
	batch := updates(size)
	const window = 5_000 // below the limit: nothing folds
	for range handlers {
		calls := 0
		_, err := l.Subscribe(func(change.Change[*object]) {
			if calls++; calls%window == 0 {
				seen.Done()
			}
		}, nil, SubscriptionOptions{})
		if err != nil {
			b.Fatal(err)
		}
	}
	published := 0
	b.ReportAllocs()
	start := cpuTime(b)
	for b.Loop() {
		if published%window == 0 {
			seen.Wait()
			seen.Add(handlers)
		}
		l.Publish(batch, 1000)
		published += size
	}
	for ; published%window != 0; published += size {
		l.Publish(batch, 1000)
	}
	seen.Wait()
	b.ReportMetric(float64(cpuTime(b)-start)/float64(published*handlers), "cpu-ns/notification")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkPing is the time from a publish to the return of the handler, one
// notification at a time: the cost of a wake-up.
func BenchmarkPing(b *testing.B) {
	l := started(Options[*object]{})
	defer l.Close()
	pong := make(chan struct{})
	_, err := l.Subscribe(func(change.Change[*object]) { pong <- struct{}{} }, nil, SubscriptionOptions{})
	if err != nil {
		b.Fatal(err)
	}
	batch := updates(1)
	b.ReportAllocs()
	for b.Loop() {
		l.Publish(batch, 1)
		<-pong
	}
}

// BenchmarkStuck is a publish to one handler that never returns, per
// notification, once its backlog folds.
func BenchmarkStuck(b *testing.B) {
	for _, policy := range []Policy{ConflateUpdates, ConflateState} {
		b.Run(policy.String(), func(b *testing.B) {
			l := started(Options[*object]{Describe: func(o *object) (string, string) { return "1", o.uid }}) // as cheap as real ones
			release := make(chan struct{})
			s, err := l.Subscribe(func(change.Change[*object]) { <-release }, nil, SubscriptionOptions{Policy: policy})
			if err != nil {
				b.Fatal(err)
			}
			batch := updates(1000)
			for !s.Stats().Behind {
				l.Publish(batch, 1000)
			}
			b.ReportAllocs()
			published := 0
			for b.Loop() {
				l.Publish(batch, 1000)
				published += len(batch)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(published), "ns/notification")
			b.ReportMetric(float64(s.Stats().Pending), "pending")
			close(release)
			l.Close()
		})
	}
}

// BenchmarkLateJoin is a handler that joins with 10,000 objects in the cache,
// until it is synced.
func BenchmarkLateJoin(b *testing.B) {
	l := started(Options[*object]{})
	defer l.Close()
	l.MarkSynced()
	objects := make([]change.Change[*object], 10_000)
	for i := range objects {
		objects[i] = change.Change[*object]{Key: "key-" + strconv.Itoa(i), New: &object{state: i}}
	}
	var calls atomic.Int64
	b.ReportAllocs()
	for b.Loop() {
		s, err := l.Subscribe(func(change.Change[*object]) { calls.Add(1) }, items(objects), SubscriptionOptions{})
		if err != nil {
			b.Fatal(err)
		}
		<-s.Synced()
		s.Remove()
		<-s.Done()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(calls.Load()), "ns/notification")
}
