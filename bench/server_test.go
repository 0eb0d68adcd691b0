package bench

import (
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// specName returns the part of a benchmark's name that describes the server.
func specName(s server.Spec, listerWatcher bool) string {
	name := fmt.Sprintf("%s=%d/%s/", s.Kind, s.Objects, s.Encoding)
	if s.Paged {
		name += "paged"
	} else {
		name += "streamed"
	}
	if listerWatcher {
		name += "/ListerWatcher"
	}
	return name
}

// withListerWatcher returns the stacks that can read from a ListerWatcher, or all.
func withListerWatcher(yes bool) []stack.Stack {
	if yes {
		return []stack.Stack{stack.ClientGo(), stack.DropIn()}
	}
	return stack.All()
}

// BenchmarkDecoding makes objects of protobuf messages in memory, and keeps them.
func BenchmarkDecoding(b *testing.B) {
	n := pick(200, 2_000, 20_000)
	both := []stack.Stack{stack.ClientGo(), stack.Native()}
	name := fmt.Sprintf("pods=%d", n)
	onStacks(b, name, nil, both, func(b *testing.B, s stack.Stack, _ stack.Target) {
		decode := s.Decoder()
		messages := make([][]byte, n)
		for i := range messages {
			var err error
			if messages[i], err = objects.Pod(i).Marshal(); err != nil {
				b.Fatal(err)
			}
		}
		kept := make([]tidings.Object, n)
		before := measure.LiveHeap()
		used := measure.Of(b, func() {
			for i, message := range messages {
				var err error
				if kept[i], err = decode(message); err != nil {
					b.Fatal(err)
				}
			}
		})
		after := measure.LiveHeap()
		for i, o := range kept {
			if want := objects.Version(i); o.GetResourceVersion() != want {
				b.Fatalf("object %d has version %s, want %s", i, o.GetResourceVersion(), want)
			}
		}
		runtime.KeepAlive(messages)
		used.Report(b, n, "object")
		b.ReportMetric((after-before)/float64(n), "heap-B/object")
	})
}

// syncCase is a first list.
type syncCase struct {
	server.Spec
	handlers      int
	listerWatcher bool
	viewAlone     bool // the others would need too much memory
}

// stacks returns the stacks that can read the server's objects. The drop-in has no client that
// decodes custom resources into structs.
func (c *syncCase) stacks() []stack.Stack {
	if c.viewAlone {
		return []stack.Stack{stack.View()}
	}
	if c.Kind == objects.Databases || c.Kind == objects.UnlikeDatabases {
		return []stack.Stack{stack.ClientGo(), stack.Native(), stack.View()}
	}
	stacks := withListerWatcher(c.listerWatcher)
	if !c.listerWatcher && (c.Kind == objects.Pods || c.Kind == objects.UnlikePods) {
		stacks = append(stacks, stack.View())
	}
	return stacks
}

// BenchmarkSync is the first list of an informer, over HTTP, until every handler was notified
// of every object.
func BenchmarkSync(b *testing.B) {
	n, others := pick(300, 3_000, 50_000), pick(150, 1_000, 10_000)
	const streamed, paged = false, true
	of := func(kind objects.Kind, n int, e server.Encoding, paged bool) syncCase {
		return syncCase{server.Spec{Kind: kind, Objects: n, Encoding: e, Paged: paged}, 1, false, false}
	}
	usual := of(objects.Pods, n, server.Protobuf, streamed)
	many, decoded := usual, usual
	many.handlers, decoded.listerWatcher = 20, true
	decodedWidgets := of(objects.Widgets, 2*others, server.JSON, streamed)
	decodedWidgets.listerWatcher = true
	cases := []syncCase{
		usual, many, decoded,
		of(objects.Pods, n, server.Protobuf, paged),
		of(objects.Pods, n, server.JSON, streamed),
		of(objects.Pods, n, server.JSON, paged),
		of(objects.UnlikePods, others, server.Protobuf, streamed),
		of(objects.Deployments, others, server.Protobuf, streamed),
		of(objects.ConfigMaps, others, server.Protobuf, streamed),
		of(objects.Widgets, 2*others, server.JSON, streamed),
		of(objects.Widgets, 2*others, server.JSON, paged),
		decodedWidgets,
	}
	for _, paged := range []bool{streamed, paged} {
		cases = append(cases, of(objects.UnlikePods, n, server.JSON, paged),
			of(objects.Databases, 2*others, server.JSON, paged),
			of(objects.UnlikeDatabases, 2*others, server.JSON, paged))
	}
	for _, n := range pick(nil, nil, []int{10_000, 200_000}) {
		cases = append(cases, of(objects.Pods, n, server.Protobuf, streamed))
	}
	for _, n := range pick(nil, nil, []int{1_000_000}) {
		huge := of(objects.Pods, n, server.Protobuf, streamed)
		huge.viewAlone = true
		cases = append(cases, huge)
	}
	for _, c := range cases {
		name := fmt.Sprintf("%s/handlers=%d", specName(c.Spec, c.listerWatcher), c.handlers)
		onStacks(b, name, []server.Spec{c.Spec}, c.stacks(),
			func(b *testing.B, s stack.Stack, t stack.Target) {
				benchmarkSync(b, s, t, c.handlers, c.listerWatcher)
			})
	}
}

func benchmarkSync(
	b *testing.B, s stack.Stack, t stack.Target, handlers int, listerWatcher bool,
) {
	counters, handle := newCounters(handlers)
	before := measure.LiveHeap()
	var informer running
	used := measure.Of(b, func() {
		made, err := s.FromServer(t, stack.Options{ListerWatcher: listerWatcher})
		informer = start(b, made, err, handle...)
	})
	highest, after := measure.Peak(b), measure.LiveHeap()
	collection := measure.Of(b, runtime.GC).CPU
	for range 4 {
		collection = min(collection, measure.Of(b, runtime.GC).CPU)
	}
	for i, c := range counters {
		if n := int(c.n.Load()); n != t.Objects {
			b.Fatalf("handler %d has %d notifications, want %d", i, n, t.Objects)
		}
	}
	if n := informer.Len(); n != t.Objects {
		b.Fatalf("%d objects are cached, want %d", n, t.Objects)
	}
	last := t.Kind.New(t.Objects - 1)
	if cached, ok := informer.Get(key(last)); !ok || cached.GetUID() != last.GetUID() {
		b.Fatalf("object %d is not cached as it was made", t.Objects-1)
	}
	used.Report(b, t.Objects, "object")
	b.ReportMetric((after-before)/float64(t.Objects), "heap-B/object")
	b.ReportMetric(highest, "peak-B")
	b.ReportMetric(float64(collection), "collection-cpu-ns")
	informer.stop()
}

// BenchmarkUpdates is a watch over HTTP that sends new states as fast as the informer takes them,
// until the handler was notified of the last state of each object.
func BenchmarkUpdates(b *testing.B) {
	spec := server.Spec{
		Kind: objects.Pods, Objects: pick(200, 2_000, 10_000), Encoding: server.Protobuf,
		Updates: pick(600, 6_000, 40_000),
	}
	for _, listerWatcher := range []bool{false, true} {
		name := fmt.Sprintf("%s/updates=%d", specName(spec, listerWatcher), spec.Updates)
		stacks := withListerWatcher(listerWatcher)
		if !listerWatcher {
			stacks = append(stacks, stack.View())
		}
		onStacks(b, name, []server.Spec{spec}, stacks,
			func(b *testing.B, s stack.Stack, t stack.Target) {
				benchmarkUpdates(b, s, t, listerWatcher)
			})
	}
}

// BenchmarkEyes is BenchmarkUpdates of an informer that is looked at, in each way and in all.
func BenchmarkEyes(b *testing.B) {
	spec := server.Spec{
		Kind: objects.Pods, Objects: pick(200, 2_000, 10_000), Encoding: server.Protobuf,
		Updates: pick(600, 20_000, 100_000),
	}
	onStacks(b, fmt.Sprintf("updates=%d", spec.Updates), []server.Spec{spec}, []stack.Stack{
		stack.Native(),
		stack.NativeWith("metrics", stack.Eyes{Metrics: true}),
		stack.NativeWith("pages", stack.Eyes{Pages: true}),
		stack.NativeWith("recorder", stack.Eyes{Recorder: true}),
		stack.NativeWith("all", stack.Eyes{Metrics: true, Pages: true, Recorder: true}),
	}, func(b *testing.B, s stack.Stack, t stack.Target) { benchmarkUpdates(b, s, t, false) })
}

func benchmarkUpdates(b *testing.B, s stack.Stack, t stack.Target, listerWatcher bool) {
	last := newLastStates(t.Objects)
	before := measure.LiveHeap()
	made, err := s.FromServer(t, stack.Options{ListerWatcher: listerWatcher})
	informer := start(b, made, err, last.handler(t.Updates, t.Objects))
	last.measure(b, t.URL, t.Updates)
	if quiet := pick(0, 0, time.Minute); listerWatcher && quiet > 0 {
		time.Sleep(quiet) // then objects of a ListerWatcher have shared their parts
		b.ReportMetric((measure.LiveHeap()-before)/float64(t.Objects), "quiet-heap-B/object")
	}
	informer.stop()
}

// lastStates waits until handlers were notified of the last state of each object.
type lastStates struct {
	notified atomic.Int64  // updates
	left     atomic.Int64  // objects
	done     chan struct{} // closed when none is left
}

func newLastStates(objects int) *lastStates {
	l := &lastStates{done: make(chan struct{})}
	l.left.Store(int64(objects))
	return l
}

// handler returns a handler of objects with so many updates in all.
func (l *lastStates) handler(updates, objects int) stack.Handler {
	first := server.FirstUpdate + updates - objects // the first version of a last state
	return func(c stack.Change, _, after tidings.Object) {
		if c != stack.Updated {
			return
		}
		l.notified.Add(1)
		version, err := strconv.Atoi(after.GetResourceVersion())
		if err == nil && version >= first && l.left.Add(-1) == 0 {
			close(l.done)
		}
	}
}

// measure has a server make its updates, and reports their costs.
func (l *lastStates) measure(b *testing.B, url string, updates int) {
	used := measure.Of(b, func() {
		post(b, url+"/updates")
		await(b, l.done, func() string {
			return fmt.Sprintf("the handlers lack the last state of %d objects", l.left.Load())
		})
	})
	used.Report(b, updates, "update")
	b.ReportMetric(float64(int64(updates)-l.notified.Load()), "conflated-updates")
}

// post asks the server for something.
func post(b *testing.B, url string) {
	response, err := http.Post(url, "", nil)
	if err != nil {
		b.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		b.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		b.Fatalf("POST %s: %s", url, response.Status)
	}
}

// BenchmarkRelist is a watch that ends with 410 Gone, and the list after it, beside a reader.
func BenchmarkRelist(b *testing.B) {
	for _, paged := range []bool{false, true} {
		spec := server.Spec{
			Kind: objects.Pods, Objects: pick(300, 3_000, 50_000), Encoding: server.Protobuf,
			Paged: paged, Relist: true,
		}
		stacks := append(stack.All(), stack.View())
		onStacks(b, specName(spec, false), []server.Spec{spec}, stacks, benchmarkRelist)
	}
}

func benchmarkRelist(b *testing.B, s stack.Stack, t stack.Target) {
	want := server.After(t.Objects)
	changes := relistChanges{want: want, done: make(chan struct{})}
	made, err := s.FromServer(t, stack.Options{})
	informer := start(b, made, err, changes.handle)
	var keys []string // of objects that a relist does not delete
	for i := 2; i < t.Objects; i += 100 {
		keys = append(keys, key(t.Kind.New(i)))
	}
	steady := measure.ResidentSet(b)
	measure.ResetPeak(b)
	stopReading := startReading(informer, keys)
	changes.begin()
	used := measure.Of(b, func() {
		post(b, t.URL+"/relist")
		await(b, changes.done, changes.String)
	})
	reads := stopReading()
	highest := measure.Peak(b)
	if n := informer.Len(); n != t.Objects-want.Deleted+want.Added {
		b.Fatalf("%d objects are cached, want %d", n, t.Objects-want.Deleted+want.Added)
	}
	if reads.missing > 0 {
		b.Fatalf("%d of %d reads did not find an object that was always there",
			reads.missing, reads.all)
	}
	b.ReportMetric(highest/steady, "peak/steady")
	b.ReportMetric(max(highest-steady, 0)/float64(t.Objects), "above-steady-B/object")
	b.ReportMetric(float64(reads.longest), "longest-read-ns")
	b.ReportMetric(float64(reads.slow), "slow-reads-ns")
	b.ReportMetric(float64(used.Wall), "last-change-ns")
	b.ReportMetric(float64(used.CPU), "cpu-ns")
	b.ReportMetric(used.Bytes/float64(t.Objects), "B/object")
	informer.stop()
}

// relistChanges counts the notifications of a relist.
type relistChanges struct {
	mu   sync.Mutex // guards the rest
	on   bool       // the first list is over
	got  server.Counts
	want server.Counts
	done chan struct{} // closed when got is want
}

func (c *relistChanges) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.on = true
}

// handle counts. An update between equal versions, which client-go's handlers receive for every
// object that a relist finds unchanged, is no change.
func (c *relistChanges) handle(change stack.Change, before, after tidings.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unchanged := change == stack.Updated && before.GetResourceVersion() == after.GetResourceVersion()
	if !c.on || unchanged {
		return
	}
	switch change {
	case stack.Added:
		c.got.Added++
	case stack.Updated:
		c.got.Changed++
	case stack.Deleted:
		c.got.Deleted++
	}
	if c.got == c.want {
		close(c.done)
	}
}

// String describes the notifications.
func (c *relistChanges) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprintf("the handler's changes are %+v, want %+v", c.got, c.want)
}

// readTimes are the times of reads.
type readTimes struct {
	all, missing  int
	longest, slow time.Duration // slow is the sum of those over a millisecond
}

// startReading gets one object after another until the function that it returns is called.
func startReading(informer stack.Informer, keys []string) (stop func() readTimes) {
	end, result := make(chan struct{}), make(chan readTimes, 1)
	go func() {
		var t readTimes
		for {
			select {
			case <-end:
				result <- t
				return
			default:
			}
			begin := time.Now()
			_, ok := informer.Get(keys[t.all%len(keys)])
			took := time.Since(begin)
			t.all++
			if !ok {
				t.missing++
			}
			if t.longest = max(t.longest, took); took > time.Millisecond {
				t.slow += took
			}
		}
	}()
	return func() readTimes { close(end); return <-result }
}
