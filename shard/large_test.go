package shard

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/engine/slot"
)

// largeReplicas is the number of replicas of a Deployment. A quarter of them is replaced at a
// time.
var largeReplicas = flag.Int("shard.replicas", 8, "replicas of the simulated rolling update")

const (
	largeObjects = 1_000_000
	// A list of all objects takes as long as one of a million pods does at 5 µs for each.
	largeWarm = 5 * time.Second
	largeCall = 500 * time.Millisecond
)

// TestS4_ARollingUpdateOfManyMembers has a million objects, by their UIDs. Calls take half a
// second.
func TestS4_ARollingUpdateOfManyMembers(t *testing.T) {
	bubble(t, func(w *world) {
		random := rand.New(rand.NewPCG(1, 0))
		var objects [Count]int
		for range largeObjects {
			uid := fmt.Sprintf("%08x-%04x-4%03x-%012x", random.Uint32(), random.IntN(1<<16),
				random.IntN(1<<12), random.Int64N(1<<48))
			objects[slot.UID.Of(uid, "")]++
		}
		w.weigh(func(n int) int { return objects[n] })
		start := func(name, generation string) *process {
			return w.start(name, generation, func(p *process) { p.warmFor, p.drainFor = largeWarm, largeCall })
		}
		var old, replaced []*process
		replicas := *largeReplicas
		surge := max(replicas/4, 1)
		for i := range replicas {
			old = append(old, start(fmt.Sprint("old", i), "1"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		w.covered(old...)
		w.wantEven("before", old)

		began := time.Now()
		w.server.ForgetRequests() // the server keeps a bounded number of them
		for len(replaced) < replicas {
			for i := range surge {
				replaced = append(replaced, start(fmt.Sprint("new", len(replaced)+i), "2"))
			}
			time.Sleep(15 * time.Second)
			for _, p := range old[:surge] {
				p.stop()
			}
			for _, p := range old[:surge] {
				p.leave()
			}
			old = old[surge:]
		}
		took := time.Since(began)
		w.covered(replaced...)
		t.Logf("%d replicas were replaced in %v: %.1f writes of Leases a second, %d of them of the map, of %d bytes",
			replicas, took.Round(time.Second), float64(w.leaseWrites())/took.Seconds(),
			w.mapWrites(), len(w.lease("rollout").Annotations[entriesAnnotation]))
		moves := w.moved(began)
		if slices.Max(moves[:]) != 1 || slices.Min(moves[:]) != 1 {
			t.Errorf("the slots moved %v times", moves)
		}
		gap := w.longestGap(began)
		w.wantBetween("the longest gap", gap, 0, largeCall+time.Second)
		t.Logf("each slot moved once; the longest gap is %v", gap)
		time.Sleep(3 * time.Minute)
		w.covered(replaced...)
		w.wantEven("after", replaced)
	})
}

// wantEven checks that the members' parts of the objects are within 20 % of the mean, or a slot.
func (w *world) wantEven(when string, processes []*process) {
	w.Helper()
	var parts []float64
	for _, p := range processes {
		parts = append(parts, float64(w.sum(p)*len(processes))/largeObjects)
	}
	w.Logf("%s: the objects of a member are between %.2f and %.2f of the mean", when, slices.Min(parts),
		slices.Max(parts))
	slot := float64(len(processes)) / Count
	if slices.Max(parts) > 1.2+slot || slices.Min(parts) < 0.8-slot {
		w.Errorf("%s: the parts are %.2f", when, parts)
	}
}
