package contract_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// TestS7_TheServerSends1n changes 400 objects, of which an informer holds a quarter. It compares
// the bytes of its list and of its watch with those of a server that does not select.
func TestS7_TheServerSends1n(t *testing.T) {
	const objects = 400
	sent := map[string][2]uint64{}
	share := 0.0
	for _, shards := range []string{"", "all"} {
		withShards(t, shards, func(s *slotted) {
			s.have(objects)
			s.start()
			if h := s.health(); h.Sharded != (shards == "all") {
				t.Errorf("servers that select: %q; health says %t", shards, h.Sharded)
			}
			list := s.health().Bytes
			for i := range objects {
				s.update(fmt.Sprintf("o%03d", i), "1")
			}
			synctest.Wait()
			sent[shards] = [2]uint64{list, s.health().Bytes - list}
			share = float64(len(s.heldState())) / objects
		})
	}
	t.Logf("bytes of list and watch: %v; %.2f of the objects are held", sent, share)
	for i, what := range []string{"list", "watch"} {
		got := float64(sent["all"][i]) / float64(sent[""][i])
		if got < 0.8*share || got > 1.2*share {
			t.Errorf("a server that selects sends %.3f of the %s, with %.3f of the objects", got, what, share)
		}
	}
}

// TestS7_AWatchSelectsWhatIsHeld looks at the requests of an informer whose slots come and go.
func TestS7_AWatchSelectsWhatIsHeld(t *testing.T) {
	come := slot.Of(200, 201)
	withShards(t, "all", func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		expect := func(verb string, set tidings.SlotSet, times int) {
			t.Helper()
			query := map[string]string{"shardSelector": set.UIDSelector()}
			s.server.ExpectRequests(s, apisim.Match{Verb: verb, Query: query}, times)
		}
		expect("list", quarter(), 1)  // the question whether the server selects
		expect("watch", quarter(), 1) // with the list
		reached := s.health().Version
		s.server.ForgetRequests()
		s.must(s.slots.Add(s.ctx, come))
		synctest.Wait()
		expect("list", come, 1)
		expect("watch", quarter().Union(come), 1)
		s.server.ExpectRequests(s, apisim.Match{Verb: "watch", Query: map[string]string{"resourceVersion": reached}}, 1)
		s.server.ExpectRequests(s, apisim.Match{Verb: "list"}, 1)

		s.server.ForgetRequests()
		s.slots.Remove(come)
		s.after(time.Second)
		s.server.ExpectRequests(s, apisim.Match{}, 0)
		s.must(s.slots.Add(s.ctx, come)) // the watch has them still
		synctest.Wait()
		expect("list", come, 1)
		s.server.ExpectRequests(s, apisim.Match{Verb: "watch"}, 0)
		s.slots.Remove(come)
		s.server.ForgetRequests()
		s.after(11 * time.Minute)
		s.server.ExpectRequests(s, apisim.Match{Verb: "list"}, 0)
		if n := len(s.server.Requests()); n == 0 {
			t.Error("the watch was not begun anew")
		}
		expect("watch", quarter(), len(s.server.Requests()))
		s.agree(l)
	})
}

// TestS7_SlotsComeAfterADelete: a delete makes the next watch begin at the event before it, where
// the server has events of the slots that have come since. They are older than the delete, and no
// sign of a server that was set back.
func TestS7_SlotsComeAfterADelete(t *testing.T) {
	withShards(t, "all", func(s *slotted) {
		s.have(40)
		l := s.follow()
		s.start()
		held := s.heldState()
		var mine, others []string
		for i := range 40 {
			name := fmt.Sprintf("o%03d", i)
			if _, ok := held["default/"+name]; ok {
				mine = append(mine, name)
			} else {
				others = append(others, name)
			}
		}
		s.update(mine[0], "1")
		s.update(others[0], "1") // the watch does not bring it
		s.remove(mine[1])
		synctest.Wait()
		s.server.ForgetRequests()
		s.must(s.slots.Add(s.ctx, tidings.AllSlots()))
		synctest.Wait()
		if h := s.health(); h.LastError != nil {
			t.Errorf("the watch failed: %v", h.LastError)
		}
		s.server.CutConnections() // the next watch must not begin before the older event
		s.after(10 * time.Second)
		if h := s.health(); h.LastError != nil && strings.Contains(h.LastError.Error(), "older version") {
			t.Errorf("the next watch failed: %v", h.LastError)
		}
		s.server.ExpectRequests(s, apisim.Match{Verb: "list"}, 1) // of the slots that came
		s.agree(l)
	})
}

// TestS7_ServersThatDoNotSelect are asked with each list and each watch whether they do, and get no
// other selector.
func TestS7_ServersThatDoNotSelect(t *testing.T) {
	withShards(t, "", func(s *slotted) {
		s.have(40)
		s.start()
		s.must(s.slots.Add(s.ctx, half(0)))
		s.after(11 * time.Minute)
		asked := map[string]string{"shardSelector": ""}
		s.server.ExpectRequests(s, apisim.Match{Verb: "watch", Query: asked}, 0)
		for _, r := range s.server.Requests() {
			if r.Verb == "list" && r.Query.Has("shardSelector") && r.Query.Get("limit") != "1" {
				t.Errorf("a list with a selector: %v", r.Query)
			}
		}
		if s.health().Sharded {
			t.Error("health says that the server selects")
		}
	})
}

// TestS7_ARefusedSelectorIsLeftOut has the server, or a proxy, refuse each watch with a selector.
func TestS7_ARefusedSelectorIsLeftOut(t *testing.T) {
	for _, code := range []int{http.StatusBadRequest, http.StatusRequestURITooLong, http.StatusInternalServerError} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			withShards(t, "all", func(s *slotted) {
				s.have(40)
				l := s.follow()
				s.server.Inject(apisim.Match{Verb: "watch", Query: map[string]string{"shardSelector": ""}}, apisim.Refuse(code, 0))
				s.start()
				for i := range 40 {
					s.update(fmt.Sprintf("o%03d", i), "1")
				}
				s.must(s.slots.Add(s.ctx, half(0)))
				s.after(time.Minute)
				s.agree(l)
				if h := s.health(); h.Sharded || h.Failures > 0 {
					t.Errorf("the health is %+v", h)
				}
			})
		})
	}
}

// TestS7_OnlyNamespacesOfASlotAreListed: by namespace, slots that come are listed in their
// namespaces.
func TestS7_OnlyNamespacesOfASlotAreListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, kinds["typed"], tidings.FactoryOptions{}, apisim.Options{})
		defer w.end()
		var names []string
		for i := range 20 {
			names = append(names, fmt.Sprintf("team-%03d", i))
		}
		slots := tidings.NewSlots(tidings.ByNamespace, tidings.SlotSet{})
		w.probe = w.ask(w.T, w.factory, tidings.Selection{Namespaces: names, Slots: slots})
		w.haveIn(1, names...)
		w.start()
		w.server.ForgetRequests()
		var one tidings.SlotSet
		one.Add(tidings.ByNamespace.Of("", names[0]))
		w.must(slots.Add(w.ctx, one))
		if lists, held := w.lists(), len(w.probe.state()); lists != held || held == 0 {
			t.Errorf("%d lists for a slot with %d namespaces", lists, held)
		}
	})
}
