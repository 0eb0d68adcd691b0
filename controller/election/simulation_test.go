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
	"github.com/tidings-go/tidings/internal/lead/lease/leasetest"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var histories = seeds.New("term", "TestC10_NeverTwoOpenTerms", 40)

// TestC10_NeverTwoOpenTerms has three candidates under random faults for ten virtual minutes per
// seed. At no time may two terms be open. Once the faults are over, one of them leads.
func TestC10_NeverTwoOpenTerms(t *testing.T) {
	var total, lost int
	leasetest.Histories(t, histories, func(t *testing.T, o apisim.Options, random *rand.Rand) {
		terms, losses := newWorld(t, o).history(random)
		total, lost = total+terms, lost+losses
	})
	t.Logf("%d terms, %d of them lost", total, lost)
}

// history runs one history. It returns the number of terms, and the number of lost terms.
func (w *world) history(random *rand.Rand) (terms, lost int) {
	var all []*candidate
	running := map[string]*candidate{}
	h := leasetest.History{Server: w.server, Random: random, Faults: 10}
	h.Start = func(name string) {
		running[name] = w.start(options(name), time.Duration(random.IntN(8))*time.Second)
		all = append(all, running[name])
	}
	h.Stop = func(name string) {
		running[name].stop()
		<-running[name].done
	}
	h.Delete = func(string) {
		w.server.Delete(w.Context(), leaseResource, "ops", "rollout") //nolint:errcheck // it may be gone
		time.Sleep(40 * time.Second)                                  // no process starts meanwhile
	}
	h.Run()
	time.Sleep(time.Minute)
	synctest.Wait()
	return w.check(all)
}

// check checks that no two terms overlap, that all identities differ, and that one term is open
// at the end.
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
