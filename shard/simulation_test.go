package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var histories = seeds.New("shard", "TestS1_NeverTwoCallers", 4)

// TestS1_NeverTwoCallers has three processes under random faults for ten virtual minutes per seed.
// At no time may two of them call for a slot, or for a controller that is led as a whole. Once the
// faults are over, each has a caller.
func TestS1_NeverTwoCallers(t *testing.T) {
	spans, terms := 0, 0
	leasetest.Histories(t, histories, func(t *testing.T, o apisim.Options, random *rand.Rand) {
		w := newWorld(t, o)
		terms += w.history(random)
		w.check()
		spans += len(w.spans)
	})
	t.Logf("%d times a process called for an entry, in %d terms", spans, terms)
}

// history runs one history and returns the number of memberships.
func (w *world) history(random *rand.Rand) (terms int) {
	var all []*process
	running := map[string]*process{}
	h := leasetest.History{Server: w.server, Random: random, Faults: 11}
	h.Start = func(name string) {
		running[name] = w.start(name, fmt.Sprint(random.IntN(2)), leading("x", "y", "z"), func(p *process) {
			p.drainFor, p.warmFor = h.Within(2), h.Within(4)
			p.unknown = random.IntN(8) == 0
			skew, began := random.Float64()/10, time.Now()
			p.boot = func() time.Duration { return time.Duration(float64(time.Since(began)) * (1 + skew)) }
			switch random.IntN(8) {
			case 0:
				p.work.Lacks = []string{"counter"}
			case 1:
				p.warmErr = errForbidden
			case 2:
				p.unready = true
			}
		})
		all = append(all, running[name])
	}
	h.Stop = func(name string) { running[name].leave() }
	h.Delete = func(name string) {
		identity := running[name].Health().Identity
		w.server.Delete(w.Context(), leaseResource, "ops", identity) //nolint:errcheck // it may be gone
	}
	h.Restored = func() { w.restored = true }
	h.Run()
	for _, p := range running {
		p.set(recovers)
	}
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	w.covered(running["a"], running["b"], running["c"])
	w.wantLed("at the end", running["a"], running["b"], running["c"])
	for _, p := range all {
		terms += len(p.terms)
	}
	return terms
}
