package contract_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
)

// quarter is a quarter of all slots.
func quarter() (set tidings.SlotSet) {
	for n := range 64 {
		set.Add(n)
	}
	return set
}

// withShards runs a test with a typed informer of a quarter of all slots, at servers of which
// "all", "some" or none ("") honour shard selectors.
func withShards(t *testing.T, shards string, test func(s *slotted)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{},
			apisim.Options{ShardedListAndWatch: shards != "", Seed: 1})
		defer w.end()
		test(newSlotted(w, quarter(), shards))
	})
}

// movedAlone checks that all deletes since the last call are marked as moved, and that there are
// some.
func (s *slotted) movedAlone(l *ledger) {
	s.Helper()
	deletes := 0
	for _, e := range l.Take() {
		if e.Type != tidings.Deleted {
			continue
		}
		if deletes++; !e.Moved {
			s.Errorf("the server has the object of %v", e)
		}
	}
	if deletes == 0 {
		s.Error("nothing has left")
	}
}

// haveIn creates n objects in each of some namespaces.
func (w *world) haveIn(n int, namespaces ...string) {
	w.Helper()
	w.haveNamespaces(namespaces...)
	for _, namespace := range namespaces {
		for i := range n {
			w.createIn(namespace, fmt.Sprintf("%s%02d", namespace, i), "1")
		}
	}
}

// within returns a context that ends after a time.
func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.ctx, d)
	w.Cleanup(cancel)
	return ctx
}

// lists returns the number of requests for pages since the requests were forgotten.
func (w *world) lists() (n int) {
	for _, r := range w.server.Requests() {
		if r.Verb == "list" {
			n++
		}
	}
	return n
}

// withSlots runs a test for every kind of informer, with some slots at first.
func withSlots(
	t *testing.T, o tidings.FactoryOptions, first tidings.SlotSet, test func(s *slotted),
) {
	t.Helper()
	withKinds(t, o, func(w *world) {
		test(newSlotted(w, first, ""))
	})
	for _, shards := range []string{"all", "some"} { // others are not told that they may select
		t.Run(shards+" servers select", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, kinds["typed"], o, apisim.Options{ShardedListAndWatch: true, Seed: 1})
				defer w.end()
				test(newSlotted(w, first, shards))
			})
		})
	}
}

func newSlotted(w *world, first tidings.SlotSet, shards string) *slotted {
	s := &slotted{world: w, slots: tidings.NewSlots(tidings.ByUID, first), shards: shards}
	if shards == "some" {
		w.gate.set(ignoreEverySecond())
	}
	w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespace: "default", Slots: s.slots})
	return s
}

// ignoreEverySecond has every second shard selector reach a server that ignores them.
func ignoreEverySecond() func(http.ResponseWriter, *http.Request) bool {
	var n atomic.Int64
	return func(_ http.ResponseWriter, r *http.Request) bool {
		if q := r.URL.Query(); q.Has("shardSelector") && n.Add(1)%2 == 0 {
			q.Del("shardSelector")
			r.URL.RawQuery = q.Encode()
		}
		return false
	}
}

// slotted is a world whose informer has slots.
type slotted struct {
	*world
	slots  *tidings.Slots
	shards string // how many servers honour shard selectors: "" for none, "some" and "all"
}

// have creates n objects.
func (s *slotted) have(n int) {
	s.Helper()
	for i := range n {
		s.create(fmt.Sprintf("o%03d", i), "0")
	}
}

// heldState returns the states of the server in the slots that are held.
func (s *slotted) heldState() map[string]string {
	s.Helper()
	state := s.serverState()
	maps.DeleteFunc(state, func(_, state string) bool { return !s.slots.Has(follow.UID(state), "default") })
	return state
}

// agree checks that the cache and the events add up to the server's state, in the held slots.
func (s *slotted) agree(l *ledger) {
	s.Helper()
	want := s.heldState()
	if got := s.probe.state(); !maps.Equal(got, want) {
		s.Errorf("slots %v: the cache holds %v, the server %v", s.slots.Slots(), got, want)
	}
	if got := l.Held(); !maps.Equal(got, want) {
		s.Errorf("slots %v: the handler adds up to %v, the server has %v", s.slots.Slots(), got, want)
	}
}

// half returns the slots that are n modulo 2.
func half(n int) (set tidings.SlotSet) {
	for i := n; i < 256; i += 2 {
		set.Add(i)
	}
	return set
}

func randomSlots(random *rand.Rand) (set tidings.SlotSet) {
	for n := range 256 {
		if random.IntN(3) == 0 {
			set.Add(n)
		}
	}
	return set
}

// gone is the state of an object that has been deleted, which comes after all others.
const gone = "~"
