package bench

import (
	"fmt"
	"maps"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/feed"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// growth measures the heap while one handler of two does not return.
type growth struct {
	pods, events int
	thing        string // "update" or "lifetime", of perThing events
	perThing     int
	heapLimit    float64
	// next makes the batches of one round, after so many events.
	next func(f *feed.Feed, done, round int) [][]feed.Event
}

// BenchmarkStuck is updates of a few keys while one handler of two does not return.
func BenchmarkStuck(b *testing.B) { stuckGrowth().run(b) }

func stuckGrowth() growth {
	n := pick(100, 1_000, 10_000)
	return growth{
		pods: n, events: pick(20_000, 100_000, 10_000_000), thing: "update", perThing: 1,
		heapLimit: pick[float64](1<<30, 256<<20, 2<<30),
		next: func(f *feed.Feed, done, round int) [][]feed.Event {
			return updates(f, done, round, n)
		},
	}
}

// BenchmarkChurn is objects that are created and deleted, each under a name of its own, while one
// handler of two does not return. A lifetime is two events.
func BenchmarkChurn(b *testing.B) {
	n := pick(200, 1_000, 10_000)
	growth{
		pods: n, events: pick(10_000, 50_000, 2_000_000), thing: "lifetime", perThing: 2,
		heapLimit: pick[float64](1<<30, 256<<20, 4<<30),
		next: func(f *feed.Feed, done, round int) [][]feed.Event {
			return lifetimes(f, done, round, n)
		},
	}.run(b)
}

// lifetimes makes batches of objects that are added and, in the batch after, deleted.
func lifetimes(f *feed.Feed, done, round, objects int) [][]feed.Event {
	var batches [][]feed.Event
	for made := done; made < done+round; made += 2 * batchSize {
		var added, deleted []feed.Event
		for i := range batchSize {
			e := f.Add((made/2+i)%objects, fmt.Sprintf("short-lived-%d", made/2+i))
			added = append(added, e)
		}
		for _, e := range added {
			deleted = append(deleted, f.Delete(e.Object))
		}
		batches = append(batches, added, deleted)
	}
	return batches
}

func (g growth) run(b *testing.B) {
	for _, policy := range []tidings.Policy{
		tidings.PolicyConflateUpdates, tidings.PolicyConflateState, tidings.PolicyUnbounded,
	} {
		name := fmt.Sprintf("pods=%d/events=%d/%v", g.pods, g.events, policy)
		stacks := stack.All()
		if policy != tidings.PolicyConflateUpdates { // client-go's interfaces have no policies
			stacks = []stack.Stack{stack.Native()}
		}
		onStacks(b, name, nil, stacks, func(b *testing.B, s stack.Stack, _ stack.Target) {
			g.benchmark(b, s, policy)
		})
	}
}

func (g growth) benchmark(b *testing.B, s stack.Stack, policy tidings.Policy) {
	all := pods(g.pods)
	var marks []int // the numbers of events, in whole rounds, after which the heap is reported
	for _, part := range []int{100, 20, 4, 1} {
		round := roundOf(g.pods)
		if n := g.events / part / round * round; n > 0 {
			marks = append(marks, n)
		}
	}
	// Without a stuck handler, the second mark is enough.
	without, _ := g.grow(b, s, all, marks[:min(2, len(marks))], nil)
	heaps, reached := g.grow(b, s, all, marks, &policy)
	kept := max(heaps[len(heaps)-1]-without[len(without)-1], 0)
	b.ReportMetric(without[len(without)-1], "not-stuck-B")
	for i, heap := range heaps[:len(heaps)-1] {
		b.ReportMetric(heap, fmt.Sprintf("after-%d-events-B", marks[i]))
	}
	b.ReportMetric(kept/float64(reached/g.perThing), "kept-B/"+g.thing)
	b.ReportMetric(float64(reached), "events-within-limit")
}

// grow sends rounds of events and measures the heap at the marks and at the end, after so many
// events. It ends early where the heap grows over the limit. With a policy, there is a handler
// that does not return until the end. Then it has to receive the state of the other one.
func (g growth) grow(
	b *testing.B, s stack.Stack, all []*corev1.Pod, marks []int, stuck *tidings.Policy,
) (heaps []float64, reached int) {
	f := feed.New(all)
	informer, err := s.FromMemory(f, stack.Options{})
	counters, _ := newCounters(1)
	free, stuckView := newView(), newView()
	if err == nil && stuck != nil {
		err = informer.AddHandler(stuckView.handle, *stuck)
	}
	started := start(b, informer, err, func(c stack.Change, before, after tidings.Object) {
		free.handle(c, before, after)
		counters[0].count()
	})
	stuckView.hold()
	round := roundOf(g.pods)
	for over := false; reached < marks[len(marks)-1] && !over; {
		send(b, f, g.next(f, reached, round), round, counters...)
		reached += round
		over = measure.HeapBound() > g.heapLimit && measure.LiveHeap() > g.heapLimit
		if reached == marks[len(heaps)] {
			heaps = append(heaps, measure.LiveHeap())
		}
	}
	heaps = append(heaps, measure.LiveHeap())
	if stuck != nil {
		stuckView.catchUp(b, f, free, *stuck == tidings.PolicyConflateState)
	}
	started.stop()
	return heaps, reached
}

// view is a handler. It keeps the version of every object, counts adds and deletes, and can make
// calls wait.
type view struct {
	mu             sync.Mutex // guards the rest
	versions       map[string]string
	added, deleted int
	release        chan struct{} // calls wait until it is closed; nil: they return at once
	end            chan struct{} // closed by the last event
}

func newView() *view { return &view{versions: map[string]string{}, end: make(chan struct{})} }

// hold makes calls wait from now on.
func (v *view) hold() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.release = make(chan struct{})
}

// lastName is the name of the object of the last event.
const lastName = "last"

// handle is the handler.
func (v *view) handle(c stack.Change, _, o tidings.Object) {
	v.mu.Lock()
	release := v.release
	v.mu.Unlock()
	if release != nil {
		<-release
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	switch c {
	case stack.Added:
		v.added++
	case stack.Deleted:
		v.deleted++
		delete(v.versions, key(o))
		return
	}
	v.versions[key(o)] = o.GetResourceVersion()
	if o.GetName() == lastName {
		close(v.end)
	}
}

// catchUp releases the calls, sends one more event, and checks that the view is like another
// once both have it. With fewer, it may have seen fewer adds and deletes.
func (v *view) catchUp(b *testing.B, f *feed.Feed, other *view, fewer bool) {
	close(v.release)
	if err := f.Send(b.Context(), []feed.Event{f.Add(0, lastName)}); err != nil {
		b.Fatal(err)
	}
	for _, v := range []*view{v, other} {
		await(b, v.end, func() string { return "the last event has not come" })
	}
	counted := fewer || v.added == other.added && v.deleted == other.deleted
	if !counted || !maps.Equal(v.versions, other.versions) {
		b.Fatalf("after %d adds and %d deletes, the handler that was stuck has %d objects; the "+
			"other one has %d after %d and %d, or other versions", v.added, v.deleted,
			len(v.versions), len(other.versions), other.added, other.deleted)
	}
}
