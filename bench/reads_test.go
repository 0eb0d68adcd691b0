package bench

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

const (
	// nodeIndex is the index that lookups use, by the node of a pod.
	nodeIndex = "node"
	// selectedLabel is the label of selectors. A hundredth of the pods share a value.
	selectedLabel = "track"
)

// BenchmarkReads is goroutines that read as fast as they can, alone and beside updates that come
// as fast as the informer takes them.
func BenchmarkReads(b *testing.B) {
	n := pick(2_000, 3_000, 50_000)
	for _, kind := range []string{"get", "namespace", "labels", "owner", "index", "all"} {
		for _, readers := range pick([]int{1, 8}, []int{1, 8}, []int{1, 2, 8, 64}) {
			name := fmt.Sprintf("pods=%d/%s/readers=%d", n, kind, readers)
			onStacks(b, name, nil, stack.All(), func(b *testing.B, s stack.Stack, _ stack.Target) {
				benchmarkReads(b, s, kind, n, readers)
			})
		}
	}
}

func benchmarkReads(b *testing.B, s stack.Stack, kind string, n, readers int) {
	duration := pick(5*time.Millisecond, 50*time.Millisecond, 500*time.Millisecond)
	all := pods(n)
	f := feed.New(all)
	w := newWriter(f, n)
	made, err := s.FromMemory(f, stack.Options{
		Indexes: map[string]func(tidings.Object) []string{nodeIndex: nodeOf, "stored": w.index},
		Labels:  []string{selectedLabel}, Owners: true,
	})
	informer := start(b, made, err, w.handle)
	r := readsOf(b, kind, informer, all)
	count, used := r.run(b, duration, readers)
	b.ReportMetric(float64(count)/used.Wall.Seconds(), "reads/s")
	// Rounded, for a few are the timer's.
	perObject := used.Allocs / float64(count*r.want)
	b.ReportMetric(math.Round(perObject*1_000)/1_000, "allocs/object")
	b.ReportMetric(math.Round(used.Bytes/float64(count)), "B/read")
	end := w.begin(b)
	count, used = r.run(b, duration, readers)
	b.ReportMetric(float64(count)/used.Wall.Seconds(), "beside-writer-reads/s")
	b.ReportMetric(float64(end())/used.Wall.Seconds(), "updates/s")
	b.ReportMetric(percentile(w.took, 50), "stale-p50-ns")
	b.ReportMetric(percentile(w.took, 99), "stale-p99-ns")
	informer.stop()
}

// nodeOf is the index function of nodeIndex.
func nodeOf(o tidings.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }

// reads is one kind of read: one does read number i and returns how many objects it found.
type reads struct {
	one  func(i int) int
	want int
}

// readsOf returns the reads of a kind.
func readsOf(b *testing.B, kind string, informer stack.Informer, pods []*corev1.Pod) reads {
	pod := pods[len(pods)/2]
	count := func(is func(*corev1.Pod) bool) (n int) {
		for _, pod := range pods {
			if is(pod) {
				n++
			}
		}
		return n
	}
	switch kind {
	case "get":
		keys := make([]string, len(pods))
		for i, pod := range pods {
			keys[i] = key(pod)
		}
		return reads{func(i int) int {
			if _, ok := informer.Get(keys[i*7919%len(keys)]); ok {
				return 1
			}
			return 0
		}, 1}
	case "namespace":
		want := count(func(p *corev1.Pod) bool { return p.Namespace == pod.Namespace })
		return reads{func(int) int { return informer.Namespace(pod.Namespace) }, want}
	case "labels":
		value := pod.Labels[selectedLabel]
		selector := labels.SelectorFromSet(labels.Set{selectedLabel: value})
		want := count(func(p *corev1.Pod) bool { return p.Labels[selectedLabel] == value })
		return reads{func(int) int { return informer.Select(selector) }, want}
	case "owner":
		owner := string(pod.OwnerReferences[0].UID)
		return reads{
			func(int) int { return informer.Owned(pod.Namespace, owner) }, objects.Replicas,
		}
	case "index":
		node := pod.Spec.NodeName
		want := count(func(p *corev1.Pod) bool { return p.Spec.NodeName == node })
		return reads{func(int) int { return informer.Lookup(nodeIndex, node) }, want}
	case "all":
		return reads{func(int) int { return informer.All() }, len(pods)}
	}
	b.Fatalf("there is no read %q", kind)
	return reads{}
}

// run reads with so many goroutines for so long, and at least once with each, and returns how
// many reads there were.
func (r reads) run(b *testing.B, duration time.Duration, readers int) (n int, used measure.Usage) {
	var over atomic.Bool
	var sum, wrong atomic.Int64
	used = measure.Of(b, func() {
		timer := time.AfterFunc(duration, func() { over.Store(true) })
		defer timer.Stop()
		var all sync.WaitGroup
		for reader := range readers {
			all.Go(func() {
				n, bad := 0, 0
				for ; n == 0 || !over.Load(); n++ {
					if r.one(reader+n) != r.want {
						bad++
					}
				}
				sum.Add(int64(n))
				wrong.Add(int64(bad))
			})
		}
		all.Wait()
	})
	if wrong.Load() > 0 {
		b.Fatalf("%d of %d reads did not find the %d objects that there are",
			wrong.Load(), sum.Load(), r.want)
	}
	return int(sum.Load()), used
}

// window is the largest number of batches by which a writer is ahead of its handler: client-go's
// queue has no bound of its own.
const window = 10

// writer sends updates as fast as the informer takes them, within the window. One update at a time
// is timed: an index function, which sees a new state when the store does, measures how long it
// took from the send.
type writer struct {
	feed    *feed.Feed
	objects int
	sent    int // updates
	handled atomic.Int64
	tokens  chan struct{} // one for each batch that the handler has handled
	timed   atomic.Pointer[timedUpdate]

	mu   sync.Mutex // guards took
	took []time.Duration
}

// timedUpdate is an update that is under way.
type timedUpdate struct {
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

// handle is the handler that the writer waits for.
func (w *writer) handle(c stack.Change, _, _ tidings.Object) {
	if c == stack.Updated && w.handled.Add(1)%batchSize == 0 {
		w.tokens <- struct{}{}
	}
}

// index is the index function.
func (w *writer) index(o tidings.Object) []string {
	u := w.timed.Load()
	if u != nil && u.version == o.GetResourceVersion() && w.timed.CompareAndSwap(u, nil) {
		took := time.Since(u.at)
		w.mu.Lock()
		w.took = append(w.took, took)
		w.mu.Unlock()
	}
	return nil
}

// begin writes until end is called, which waits until the handler has handled all of it, and
// returns how many updates there were; at least one batch.
func (w *writer) begin(b *testing.B) (end func() int) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.run(ctx) }()
	return func() int {
		cancel()
		if err := <-ended; err != nil {
			b.Fatal(err)
		}
		for range window {
			<-w.tokens
		}
		return w.sent
	}
}

func (w *writer) run(ctx context.Context) error {
	for range w.tokens {
		batch := updates(w.feed, w.sent, batchSize, w.objects)[0]
		w.sent += batchSize
		if w.timed.Load() == nil {
			w.timed.Store(&timedUpdate{version: batch[batchSize-1].Version, at: time.Now()})
		}
		// A batch that is made is sent, so that every token comes back.
		if err := w.feed.Send(context.WithoutCancel(ctx), batch); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil
}
