package election

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/seeds"
)

var histories = seeds.New("term", "TestC10_NeverTwoOpenTerms", 40)

// TestC10_NeverTwoOpenTerms has three candidates under random faults for ten virtual minutes per
// seed. At no time may two terms be open. Once the faults are over, one of them leads.
func TestC10_NeverTwoOpenTerms(t *testing.T) {
	var total, lost int
	for seed := range histories.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, apisim.Options{Seed: seed, HistoryLimit: 200})
				terms, losses := w.history(rand.New(rand.NewPCG(seed, 0)))
				total, lost = total+terms, lost+losses
			})
		})
	}
	t.Logf("%d terms, %d of them lost", total, lost)
}

// history runs one history and returns the number of terms and of those that were lost.
func (w *world) history(random *rand.Rand) (terms, lost int) {
	names := []string{"a", "b", "c"}
	var all []*candidate
	running := map[string]*candidate{}
	begin := func(name string) {
		running[name] = w.start(options(name), time.Duration(random.IntN(8))*time.Second)
		all = append(all, running[name])
	}
	for _, name := range names {
		begin(name)
	}
	time.Sleep(10 * time.Second) // all have seen the Lease
	var injected []*apisim.Injection
	for range 60 {
		name := names[random.IntN(len(names))]
		switch n := random.IntN(20); {
		case n < 10:
			injected = append(injected, w.disturb(random, name))
		case n < 13:
			for _, i := range injected {
				i.Lift()
			}
			injected = nil
		case n < 15: // a planned stop, and a new process
			running[name].stop()
			<-running[name].done
			begin(name)
		case n < 16:
			w.server.Restart(apisim.RestartOptions{Down: seconds(random, 25)})
		case n < 17:
			w.server.CutConnections()
		case n < 18:
			w.server.Delete(w.Context(), leaseResource, "ops", "rollout") //nolint:errcheck // it may be gone
			time.Sleep(40 * time.Second)                                  // no process starts meanwhile
		}
		time.Sleep(seconds(random, 20))
	}
	for _, i := range injected {
		i.Lift()
	}
	w.server.Restart(apisim.RestartOptions{})
	time.Sleep(time.Minute)
	synctest.Wait()
	return w.check(all)
}

func seconds(random *rand.Rand, n int) time.Duration {
	return time.Duration(random.Int64N(int64(n) * int64(time.Second)))
}

// disturb injects a fault for some requests of a candidate.
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

// check wants no two terms to overlap, all identities to differ, and one term to be open at the
// end.
func (w *world) check(all []*candidate) (terms, lost int) {
	var spans []span
	for _, c := range all {
		c.mu.Lock()
		for _, s := range c.spans {
			if strings.Contains(fmt.Sprint(s.closed), ErrLost.Error()) {
				lost++
			}
			spans = append(spans, *s)
		}
		c.mu.Unlock()
	}
	slices.SortFunc(spans, func(a, b span) int { return a.begin.Compare(b.begin) })
	holders := map[string]bool{}
	for i, s := range spans {
		if i > 0 && (spans[i-1].end.IsZero() || s.begin.Before(spans[i-1].end)) {
			w.Errorf("%s began at %v, and %s ended at %v", s.holder, s.begin, spans[i-1].holder,
				spans[i-1].end)
		}
		if holders[s.holder] {
			w.Errorf("two terms have the identity %s", s.holder)
		}
		holders[s.holder] = true
	}
	if last := spans[len(spans)-1]; !last.end.IsZero() {
		w.Errorf("nobody leads a minute after the last fault: %v", last.closed)
	}
	return len(spans), lost
}
