package shard

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/seeds"
)

var histories = seeds.New("shard", "TestS1_NeverTwoCallers", 12)

// TestS1_NeverTwoCallers has three processes under random faults for ten virtual minutes per seed. At
// no time may two of them call for a slot. Once the faults are over, each slot has a caller.
func TestS1_NeverTwoCallers(t *testing.T) {
	spans, terms := 0, 0
	for seed := range histories.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, apisim.Options{Seed: seed, HistoryLimit: 200})
				terms += w.history(rand.New(rand.NewPCG(seed, 0)))
				w.check()
				spans += len(w.spans)
			})
		})
	}
	t.Logf("%d times a process called for a slot, in %d terms", spans, terms)
}

// history runs one history and returns the number of memberships.
func (w *world) history(random *rand.Rand) (terms int) {
	names := []string{"a", "b", "c"}
	var all []*process
	running := map[string]*process{}
	begin := func(name string) {
		running[name] = w.start(name, fmt.Sprint(random.IntN(2)), func(p *process) {
			p.drainFor = seconds(random, 8)
			p.warmFor = seconds(random, 4)
			skew, began := random.Float64()/10, time.Now()
			p.boot = func() time.Duration { return time.Duration(float64(time.Since(began)) * (1 + skew)) }
		})
		all = append(all, running[name])
	}
	for _, name := range names {
		begin(name)
	}
	time.Sleep(10 * time.Second)
	var injected []*apisim.Injection
	for range 60 {
		name := names[random.IntN(len(names))]
		switch n := random.IntN(20); {
		case n < 11:
			injected = append(injected, w.disturb(random, name))
		case n < 14:
			for _, i := range injected {
				i.Lift()
			}
			injected = nil
		case n < 16: // a planned stop, and a new process
			running[name].leave()
			begin(name)
		case n < 17:
			w.server.Restart(apisim.RestartOptions{Down: seconds(random, 25)})
		case n < 18:
			w.server.CutConnections()
		case n < 19:
			identity := running[name].Health().Identity
			w.server.Delete(w.Context(), leaseResource, "ops", identity) //nolint:errcheck // it may be gone
		}
		time.Sleep(seconds(random, 20))
	}
	for _, i := range injected {
		i.Lift()
	}
	w.server.Restart(apisim.RestartOptions{})
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	w.covered(running["a"], running["b"], running["c"])
	for _, p := range all {
		terms += len(p.terms)
	}
	return terms
}

func seconds(random *rand.Rand, n int) time.Duration {
	return time.Duration(random.Int64N(int64(n) * int64(time.Second)))
}

// disturb injects a fault for some requests of a process.
func (w *world) disturb(random *rand.Rand, name string) *apisim.Injection {
	match := by(name, []string{"", "", "update", "watch", "list", "get", "create"}[random.IntN(7)])
	if random.IntN(2) == 0 {
		match.Probability = 0.5
	}
	faults := []apisim.Fault{
		apisim.Drop(), apisim.CutBefore(0), apisim.CutWithin(1), apisim.Refuse(503, 0),
		apisim.Refuse(429, 5*time.Second), apisim.Refuse(500, 0), apisim.Stall(0, seconds(random, 40)),
		apisim.Stall(apisim.EachFrame, seconds(random, 40)), apisim.Delay(seconds(random, 40)),
		apisim.Delay(seconds(random, 4)), apisim.Stall(0, seconds(random, 4)), apisim.Fail(1, 410),
		apisim.Lag(), apisim.CutAfter(1), apisim.Duplicate(apisim.EachFrame),
	}
	return w.server.Inject(match, faults[random.IntN(len(faults))])
}
