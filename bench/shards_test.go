package bench

import (
	"fmt"
	"testing"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/bench/internal/measure"
	"github.com/tidings-go/tidings/bench/internal/objects"
	"github.com/tidings-go/tidings/bench/internal/server"
	"github.com/tidings-go/tidings/bench/internal/stack"
)

// BenchmarkShards is one of several replicas, which holds the objects of its share of the slots:
// the first list, and updates of all objects. The server sends all of them, as one without
// ShardedListAndWatch does.
func BenchmarkShards(b *testing.B) {
	start := server.Spec{
		Kind: objects.Pods, Objects: pick(300, 3_000, 200_000), Encoding: server.Protobuf, Paged: true,
	}
	updates := server.Spec{
		Kind: objects.Pods, Objects: pick(200, 2_000, 10_000), Encoding: server.Protobuf,
		Updates: pick(600, 6_000, 100_000),
	}
	for _, replicas := range []int{1, 2, 4, 8} {
		slots := share(replicas)
		onStacks(b, fmt.Sprintf("start/replicas=%d", replicas), []server.Spec{start},
			[]stack.Stack{stack.Native(), stack.View()}, func(b *testing.B, s stack.Stack, t stack.Target) {
				benchmarkShare(b, s, t, slots)
			})
		onStacks(b, fmt.Sprintf("updates/replicas=%d", replicas), []server.Spec{updates},
			[]stack.Stack{stack.Native(), stack.View()}, func(b *testing.B, s stack.Stack, t stack.Target) {
				benchmarkUpdatesOfShare(b, s, t, slots)
			})
	}
}

// share returns every slot whose number is a multiple of a number.
func share(of int) (set tidings.SlotSet) {
	for n := 0; n < 256; n += of {
		set.Add(n)
	}
	return set
}

// heldBy returns how many objects are in some slots.
func heldBy(t stack.Target, slots tidings.SlotSet) (n int) {
	for i := range t.Objects {
		if slots.Has(tidings.ByUID.Of(string(t.Kind.New(i).GetUID()), "")) {
			n++
		}
	}
	return n
}

func benchmarkShare(b *testing.B, s stack.Stack, t stack.Target, slots tidings.SlotSet) {
	held := heldBy(t, slots)
	counters, handle := newCounters(1)
	before := measure.LiveHeap()
	var informer running
	used := measure.Of(b, func() {
		made, err := s.FromServer(t, stack.Options{Slots: tidings.NewSlots(tidings.ByUID, slots)})
		informer = start(b, made, err, handle...)
	})
	highest, after := measure.Peak(b), measure.LiveHeap()
	if n, cached := int(counters[0].n.Load()), informer.Len(); n != held || cached != held {
		b.Fatalf("%d notifications and %d objects, want %d of each", n, cached, held)
	}
	b.ReportMetric(float64(held), "objects")
	b.ReportMetric(float64(used.CPU), "start-cpu-ns")
	b.ReportMetric(after-before, "heap-B")
	b.ReportMetric(highest, "peak-B")
	informer.stop()
}

func benchmarkUpdatesOfShare(b *testing.B, s stack.Stack, t stack.Target, slots tidings.SlotSet) {
	held := heldBy(t, slots)
	last := newLastStates(held)
	made, err := s.FromServer(t, stack.Options{Slots: tidings.NewSlots(tidings.ByUID, slots)})
	informer := start(b, made, err, last.handler(t.Updates, t.Objects))
	used := measure.Of(b, func() {
		post(b, t.URL+"/updates")
		await(b, last.done, func() string {
			return fmt.Sprintf("the handlers lack the last state of %d objects", last.left.Load())
		})
	})
	used.Report(b, t.Updates, "sent-update")
	b.ReportMetric(float64(last.notified.Load()), "notifications")
	informer.stop()
}
