package contract_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/internal/test/seeds"
)

// TestS6_ManyRanges holds every second slot: no selector is longer.
func TestS6_ManyRanges(t *testing.T) {
	selector := half(0).UIDSelector()
	if n := strings.Count(selector, "shardRange"); n != 128 || len(selector) > 11<<10 {
		t.Errorf("the selector has %d ranges and %d bytes", n, len(selector))
	}
}

// refuseIn refuses every request in a namespace.
func refuseIn(namespace string) func(http.ResponseWriter, *http.Request) bool {
	refused := refuse(http.StatusForbidden, "Forbidden")
	return func(rw http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "/namespaces/"+namespace+"/") && refused(rw, r)
	}
}

// TestS6_SlotsComeBesideNamespaces adds slots to an informer of two namespaces, of which one cannot
// be read. Add does not wait for that one, which has the objects once it can be read (P13).
func TestS6_SlotsComeBesideNamespaces(t *testing.T) {
	for name, unreadable := range map[string]string{
		"from the start": "start", "since it was added": "added", "since it was listed": "listed",
	} {
		t.Run(name, func(t *testing.T) {
			withKinds(t, tidings.FactoryOptions{}, func(w *world) {
				slots := tidings.NewSlots(tidings.ByUID, half(0))
				namespaces := []string{"a", "b"}
				if unreadable == "added" {
					namespaces = namespaces[:1]
				}
				w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespaces: namespaces, Slots: slots})
				w.haveIn(40, "a", "b")
				if unreadable != "listed" {
					w.gate.set(refuseIn("b"))
				}
				w.follow()
				w.must(w.factory.Start(w.ctx))
				w.after(10 * time.Second)
				if unreadable == "added" {
					w.must(w.probe.informer().AddNamespace("b"))
					w.after(10 * time.Second)
				}
				w.gate.set(refuseIn("b"))
				err := slots.Add(w.within(time.Minute), half(1))
				if (unreadable == "listed") != (err != nil) {
					w.Errorf("Add: %v", err)
				}
				synctest.Wait()
				if got, want := w.probe.state(), w.serverStateOf("a"); len(got) < len(want) {
					w.Errorf("%d of %d objects of the other namespace", len(got), len(want))
				}
				w.gate.set(nil)
				w.after(30 * time.Minute) // it needs no other Add
				w.must(w.factory.WaitForSync(w.within(time.Minute)))
				if got, want := w.probe.state(), w.serverStateOf("a", "b"); !maps.Equal(got, want) {
					w.Errorf("the cache holds %v, the server %v", got, want)
				}
				if h := w.health(); h.SlotsToList > 0 || h.Listed > 0 {
					w.Errorf("%d slots are not listed; %d objects are on their way", h.SlotsToList, h.Listed)
				}
			})
		})
	}
}

var slotSeeds = seeds.New("slots", "TestS6_RandomSlots", 12)

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

// TestS6_ChangesDuringTheList makes changes of objects in slots that come while their list is on
// its way.
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

// TestS6_RandomSlots moves slots at random, while objects are written and connections break. In
// every third history, the server is set back.
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

// rewind sets the server back, and writes until it has passed the version that was reached before.
// In between slots come, whose list shows the rewind.
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
