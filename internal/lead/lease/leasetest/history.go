package leasetest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

// History is ten virtual minutes of the processes a, b and c under random faults. All fields are
// required.
type History struct {
	Server *apisim.Server
	Random *rand.Rand
	// Faults is the number of steps, of twenty, that inject a fault. Eight more do something else,
	// and the rest nothing.
	Faults int
	// Start starts a process.
	Start func(name string)
	// Stop stops the present process of a name in order.
	Stop func(name string)
	// Delete deletes a Lease of a process.
	Delete func(name string)
	// Restored is called before a backup of the server is restored; nil restores none.
	Restored func()
}

// Histories runs a test for each seed, each in a bubble, with the options of its server.
func Histories(t *testing.T, flags seeds.Flags,
	test func(t *testing.T, o apisim.Options, random *rand.Rand)) {
	for seed := range flags.All() {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := apisim.Options{Seed: seed, HistoryLimit: 200}
				test(t, o, rand.New(rand.NewPCG(seed, 0)))
			})
		})
	}
}

// Run runs the history. All faults are over at its end.
func (h *History) Run() {
	names := []string{"a", "b", "c"}
	for _, name := range names {
		h.Start(name)
	}
	time.Sleep(10 * time.Second) // all have seen the Leases
	var injected []*apisim.Injection
	lift := func() {
		for _, i := range injected {
			i.Lift()
		}
		injected = nil
	}
	backup := h.Server.Snapshot()
	for range 60 {
		if h.Random.IntN(20) == 0 {
			backup = h.Server.Snapshot()
		}
		name := names[h.Random.IntN(len(names))]
		switch n := h.Random.IntN(20) - h.Faults; {
		case n < 0:
			injected = append(injected, h.inject(name))
		case n < 3:
			lift()
		case n < 5: // a planned stop, and a new process
			h.Stop(name)
			h.Start(name)
		case n < 6:
			h.Server.Restart(apisim.RestartOptions{Down: h.Within(25)})
		case n < 7:
			h.Server.CutConnections()
		case n < 8:
			h.Delete(name)
		case n < 9 && h.Restored != nil && h.Random.IntN(4) == 0:
			h.Restored()
			h.Server.Rewind(backup)
		}
		time.Sleep(h.Within(20))
	}
	lift()
	h.Server.Restart(apisim.RestartOptions{})
}

// Within returns a random time of less than so many seconds.
func (h *History) Within(seconds int) time.Duration {
	return time.Duration(h.Random.Int64N(int64(seconds) * int64(time.Second)))
}

// Page answers with a code and a page, as something between a process and the API server does.
func Page(code int) apisim.Fault {
	return apisim.Answer(func(out http.ResponseWriter, _ *http.Request) { http.Error(out, "no such page", code) })
}

// inject injects a fault for some requests of a process.
func (h *History) inject(process string) *apisim.Injection {
	verbs := []string{"", "", "update", "watch", "list", "get", "create"}
	match := By(process, verbs[h.Random.IntN(len(verbs))])
	if h.Random.IntN(2) == 0 {
		match.Probability = 0.5
	}
	faults := []apisim.Fault{
		apisim.Drop(), apisim.CutBefore(0), apisim.CutWithin(1), apisim.Refuse(503, 0),
		apisim.Refuse(429, 5*time.Second), apisim.Refuse(500, 0), apisim.Stall(0, h.Within(40)),
		apisim.Stall(apisim.EachFrame, h.Within(40)), apisim.Delay(h.Within(40)),
		apisim.Delay(h.Within(4)), apisim.Stall(0, h.Within(4)), apisim.Fail(1, 410),
		apisim.Lag(), apisim.CutAfter(1), apisim.Duplicate(apisim.EachFrame),
		apisim.Stall(1, 0), Page(http.StatusNotFound), apisim.RefuseApplied(500),
		apisim.ApplyLater(h.Within(20), http.StatusGatewayTimeout),
	}
	return h.Server.Inject(match, faults[h.Random.IntN(len(faults))])
}
