package tidings_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

var slotSeeds = seeds.New("slots", "TestS6_RandomSlots", 12)

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

// TestS6_SlotsComeAndGo adds slots to an informer that runs, and removes others.
func TestS6_SlotsComeAndGo(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		s.agree(l)
		first := len(s.heldState())
		if first == 0 || first == 40 {
			t.Fatalf("%d of 40 objects are in the first slots", first)
		}
		l.Take()

		s.server.ForgetRequests()
		s.must(s.slots.Add(s.ctx, half(1)))
		synctest.Wait()
		if got := len(s.probe.state()); got != 40 {
			t.Errorf("%d objects are cached when Add has returned", got)
		}
		for _, e := range l.Take() {
			if e.Type != tidings.Added || e.Initial {
				t.Errorf("the slots came with %v", e)
			}
		}
		s.agree(l)
		s.server.ExpectRequests(s, apisim.Match{Verb: "list"}, 1)
		watches := map[string]int{"all": 1}[s.shards]
		if s.shards != "some" {
			s.server.ExpectRequests(s, apisim.Match{Verb: "watch"}, watches)
		}

		s.slots.Remove(half(0))
		synctest.Wait()
		for _, e := range l.Take() {
			if e.Type != tidings.Deleted || !e.Moved || !e.Tombstone {
				t.Errorf("the slots went with %v", e)
			}
		}
		s.agree(l)
		for i := range 40 {
			s.update(fmt.Sprintf("o%03d", i), "1")
		}
		synctest.Wait()
		s.agree(l)
		if got := len(l.Take()); got != 40-first {
			t.Errorf("%d events of 40 changes, with %d objects in the slots", got, 40-first)
		}
		if s.shards != "some" {
			s.server.ExpectRequests(s, apisim.Match{Verb: "watch"}, watches)
		}
		if h := s.health(); h.Dropped != 0 || h.Stale != 0 {
			t.Errorf("%d objects were dropped and %d events stale", h.Dropped, h.Stale)
		}
	})
}

// TestS6_ChangesDuringTheList makes changes of objects in slots that come while their list is on its
// way.
func TestS6_ChangesDuringTheList(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		s.server.Inject(apisim.Match{Verb: "list"}, apisim.Delay(time.Second))
		added := make(chan error, 1)
		go func() { added <- s.slots.Add(s.ctx, half(1)) }()
		s.after(500 * time.Millisecond)
		for i := range 10 {
			s.update(fmt.Sprintf("o%03d", i), "1")
			s.remove(fmt.Sprintf("o%03d", 10+i))
			s.remove(fmt.Sprintf("o%03d", 20+i))
			s.create(fmt.Sprintf("o%03d", 20+i), "1")
		}
		s.must(<-added)
		synctest.Wait()
		s.agree(l)
	})
}

// TestS6_RandomSlots moves slots at random, while objects are written and connections break. In every
// third history, the server is set back.
func TestS6_RandomSlots(t *testing.T) {
	for seed := range slotSeeds.All() {
		o := tidings.FactoryOptions{}
		if seed%2 == 0 {
			o = paged
		}
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			withSlots(t, o, randomSlots(random), func(s *slotted) {
				h := &slotHistory{
					slotted: s, random: random, exists: map[string]bool{}, deleted: map[string]bool{}, goesBack: seed%3 == 0,
				}
				h.run()
			})
		})
	}
}

func randomSlots(random *rand.Rand) (set tidings.SlotSet) {
	for n := range 256 {
		if random.IntN(3) == 0 {
			set.Add(n)
		}
	}
	return set
}

// slotHistory is a random history.
type slotHistory struct {
	*slotted
	random   *rand.Rand
	exists   map[string]bool
	deleted  map[string]bool // by UID
	goesBack bool            // the server is set back from time to time
	steps    []string
}

// checkDeletes checks that objects which have moved are not told as deleted.
func (h *slotHistory) checkDeletes(l *ledger) {
	for _, e := range l.Take() {
		if e.Type == tidings.Deleted && !e.Moved && !h.deleted[follow.UID(e.Old)] {
			h.Errorf("%v of %s, which was not deleted", e, e.Old)
		}
	}
}

func (h *slotHistory) run() {
	for range 30 {
		h.write()
	}
	l := h.follow()
	l.Rewind(h.goesBack)
	h.start()
	for range 25 {
		if h.goesBack && h.random.IntN(4) == 0 {
			h.rewind()
		}
		var adding []chan error
		for range 1 + h.random.IntN(4) {
			if added := h.step(); added != nil {
				adding = append(adding, added)
			}
			h.after(time.Duration(h.random.IntN(300)) * time.Millisecond)
		}
		h.after(10 * time.Minute)
		for _, added := range adding {
			if err := <-added; err != nil {
				h.note("failed: %v", err)
				h.must(h.slots.Add(h.ctx, h.slots.Slots()))
			}
		}
		synctest.Wait()
		h.agree(l)
		h.checkDeletes(l)
		if e := h.health().LastError; !h.goesBack && e != nil && strings.Contains(e.Error(), "older version") {
			h.Errorf("the server was not set back: %v", e)
		}
		if wrong := l.Wrong(); h.Failed() || len(wrong) > 0 {
			h.Fatalf("%v, last error %v\nafter\n  %s", wrong, h.health().LastError, strings.Join(h.steps, "\n  "))
		}
	}
}

// rewind sets the server back, and writes until it has passed the version that was reached before. In
// between slots come, whose list shows the rewind.
func (h *slotHistory) rewind() {
	set := randomSlots(h.random)
	h.note("remove %v", set)
	h.slots.Remove(set)
	backup := h.server.Snapshot()
	for range 20 {
		h.write()
	}
	h.after(time.Second)
	lost := h.serverState()
	h.note("rewind by 20 writes")
	h.server.Rewind(backup)
	clear(h.exists)
	for key, state := range h.serverState() {
		name := strings.TrimPrefix(key, "default/")
		h.exists[name], h.uids[name] = true, follow.UID(state)
		if follow.UID(lost[key]) == follow.UID(state) {
			delete(lost, key)
		}
	}
	for _, state := range lost {
		h.deleted[follow.UID(state)] = true
	}
	h.after(time.Duration(h.random.IntN(3000)) * time.Millisecond)
	h.write()
	h.note("add %v", set)
	h.must(h.slots.Add(h.ctx, set))
	for range 40 {
		h.write()
	}
}

func (h *slotHistory) note(format string, args ...any) {
	h.steps = append(h.steps, fmt.Sprintf(format, args...))
}

// step does one thing. It returns where the result of an Add will come.
func (h *slotHistory) step() chan error {
	switch h.random.IntN(8) {
	case 0, 1:
		set, added := randomSlots(h.random), make(chan error, 1)
		h.note("add %v", set)
		if h.random.IntN(2) == 0 {
			h.slow()
		}
		go func() { added <- h.slots.Add(h.ctx, set) }()
		return added
	case 2:
		set := randomSlots(h.random)
		h.note("remove %v", set)
		h.slots.Remove(set)
	case 3:
		h.breakSomething()
	default:
		for range 1 + h.random.IntN(8) {
			h.write()
		}
	}
	return nil
}

// slow delays the next list.
func (h *slotHistory) slow() {
	h.note("the next list is slow")
	h.server.Inject(apisim.Match{Verb: "list"}.Nth(1), apisim.Delay(time.Second))
}

func (h *slotHistory) breakSomething() {
	switch h.random.IntN(4) {
	case 0:
		h.note("cut the connections")
		h.server.CutConnections()
	case 1:
		h.note("cut the connections and compact")
		h.server.CutConnections()
		h.server.Compact()
	case 2:
		h.note("restart without its history")
		h.server.Restart(apisim.RestartOptions{})
	case 3:
		h.note("unavailable for a moment")
		h.server.SetAvailable(false)
		h.write()
		time.Sleep(time.Second)
		h.server.SetAvailable(true)
	}
}

// write changes an object.
func (h *slotHistory) write() {
	name := fmt.Sprintf("o%02d", h.random.IntN(40))
	switch {
	case !h.exists[name]:
		h.note("create %s", name)
		h.create(name, "0")
		h.exists[name] = true
	case h.random.IntN(3) == 0:
		h.note("remove %s", name)
		h.deleted[h.uids[name]] = true
		h.remove(name)
		h.exists[name] = false
	default:
		h.note("update %s", name)
		h.update(name, fmt.Sprint(len(h.steps)))
	}
}

// TestS6_SlotsThatCannotBe asks for slots of objects that cannot be divided.
func TestS6_SlotsThatCannotBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		ask := func(key tidings.SlotKey) error {
			_, err := tidings.Metadata(w.factory, corev1.SchemeGroupVersion.WithResource("namespaces"), tidings.Selection{
				Slots: tidings.NewSlots(key, tidings.AllSlots()),
			})
			return err
		}
		for key, want := range map[tidings.SlotKey]string{
			tidings.ByUID:       "",
			tidings.ByNamespace: "divided by namespace, and objects of the type have none: use ByUID",
			"name":              `divided by "name": give NewSlots ByUID or ByNamespace`,
		} {
			err := ask(key)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%s: %v, want %q", key, err, want)
			}
		}
	})
}

// TestS6_AddEndsWithItsContext ends an Add whose list is not answered.
func TestS6_AddEndsWithItsContext(t *testing.T) {
	withSlots(t, tidings.FactoryOptions{}, half(0), func(s *slotted) {
		s.have(10)
		l := s.follow()
		s.start()
		i := s.server.Inject(apisim.Match{Verb: "list"}, apisim.Delay(time.Hour))
		ctx, cancel := context.WithTimeout(s.ctx, time.Second)
		defer cancel()
		if err := s.slots.Add(ctx, half(1)); err == nil || !strings.Contains(err.Error(), "deadline") {
			t.Errorf("Add: %v", err)
		}
		i.Lift()
		s.must(s.slots.Add(s.ctx, half(1)))
		synctest.Wait()
		s.agree(l)
	})
}

// TestS6_TransformsKeepTheUID has a transform that removes the field that objects are divided by.
func TestS6_TransformsKeepTheUID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{Logger: slog.New(slog.DiscardHandler)}, apisim.Options{})
		defer w.end()
		w.create("a", "1")
		w.probe = w.ask(t, w.factory, tidings.Selection{
			Slots: tidings.NewSlots(tidings.ByUID, tidings.AllSlots()),
			Transform: tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
				c.UID = ""
				return c, nil
			}),
		})
		w.start()
		h := w.health()
		if h.TransformErrors != 1 || !strings.Contains(h.LastTransformError.Error(), "divided into slots: keep it") {
			t.Errorf("%d errors of the transform, the last is %v", h.TransformErrors, h.LastTransformError)
		}
	})
}
