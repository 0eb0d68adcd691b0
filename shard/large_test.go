package shard

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tidings-go/tidings/internal/slot"
)

// largeReplicas is the number of replicas of a Deployment. A quarter of them is replaced at a
// time.
var largeReplicas = flag.Int("shard.replicas", 8, "replicas of the simulated rolling update")

const (
	largeObjects = 1_000_000
	// A list of all objects takes as long as one of a million pods does at 5 µs for each.
	largeWarm = 5 * time.Second
	largeCall = time.Second
)

// TestS4_ARollingUpdateOfManyMembers has a million objects, by their UIDs. Calls take a second.
func TestS4_ARollingUpdateOfManyMembers(t *testing.T) {
	bubble(t, func(w *world) {
		random := rand.New(rand.NewPCG(1, 0))
		var loads [Count]float64
		for range largeObjects {
			uid := fmt.Sprintf("%08x-%04x-4%03x-%012x", random.Uint32(), random.IntN(1<<16),
				random.IntN(1<<12), random.Int64N(1<<48))
			loads[slot.UID.Of(uid, "")]++
		}
		start := func(name, generation string) *process {
			return w.start(name, generation, func(p *process) {
				p.loads, p.warmFor, p.drainFor = loads, largeWarm, largeCall
			})
		}
		var old, replaced []*process
		replicas := *largeReplicas
		surge := max(replicas/4, 1)
		for i := range replicas {
			old = append(old, start(fmt.Sprint("old", i), "1"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(20 * time.Minute) // until the first member has given away its slots
		w.covered(old...)
		w.wantEven("before", loads, old)

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
		w.wantEven("after", loads, replaced)
	})
}

// wantEven checks that the members' parts of the objects are within 30 % of the mean, or a slot.
func (w *world) wantEven(when string, loads [Count]float64, processes []*process) {
	w.Helper()
	var parts []float64
	for _, p := range processes {
		part := 0.0
		p.mu.Lock()
		for n := range p.calls {
			part += loads[n]
		}
		p.mu.Unlock()
		parts = append(parts, part*float64(len(processes))/largeObjects)
	}
	w.Logf("%s: the objects of a member are between %.2f and %.2f of the mean", when, slices.Min(parts),
		slices.Max(parts))
	if slices.Max(parts) > 1.3 {
		w.Errorf("%s: the parts are %.2f", when, parts)
	}
}

// leaseWrites returns the number of writes of Leases, and mapWrites the number of writes of the
// map.
func (w *world) leaseWrites() int {
	return len(w.server.Requests().Of(by("", "update"))) + len(w.server.Requests().Of(by("", "create")))
}

func (w *world) mapWrites() (n int) {
	for _, r := range w.server.Requests().Of(by("", "update")) {
		if r.Name == "rollout" {
			n++
		}
	}
	return n
}
