package tidings_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/tidings-go/tidings"
)

// loseFour starts the informer, and sets the server back by the creation of four objects.
func (w *world) loseFour() {
	w.Helper()
	w.haveNamespaces("elsewhere")
	w.create("a", "1")
	w.follow().Rewind(true)
	w.start()
	w.after(3 * time.Minute)
	backup := w.server.Snapshot()
	for i := range 4 {
		w.create(fmt.Sprintf("lost%d", i), "1")
	}
	w.after(time.Second)
	w.server.Rewind(backup)
}

// TestP16_ARewindWithinAMoment sets a server back and cuts its connections, as a restart does, once or
// twice within ten seconds; meanwhile writes elsewhere bring it to the version that was reached.
func TestP16_ARewindWithinAMoment(t *testing.T) {
	for _, cuts := range []int{1, 2} {
		for further := range 4 {
			t.Run(fmt.Sprintf("%d cuts, %d versions beyond the reached one", cuts, further), func(t *testing.T) {
				property(t, func(w *world) {
					w.loseFour()
					w.after(7 * time.Second)
					for i := range 4 + further {
						w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
					}
					if further == 0 {
						w.after(100 * time.Millisecond)
					}
					if cuts > 1 {
						w.server.CutConnections()
					}
					w.after(10 * time.Minute)
					if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
						w.Errorf("ten minutes later the cache holds %v, the server %v", got, want)
					}
				})
			})
		}
	}
}

// TestP16_ARewindBehindAProxyThatCuts has a proxy that ends connections after 45 seconds, before a bookmark
// comes, and a collection that is never quiet.
func TestP16_ARewindBehindAProxyThatCuts(t *testing.T) {
	property(t, func(w *world) {
		w.loseFour()
		for i := range 8 {
			w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
		}
		w.after(100 * time.Millisecond)
		for n := range 240 { // twenty minutes
			w.update("a", fmt.Sprint(n))
			w.after(5 * time.Second)
			if n%9 == 8 {
				w.server.CutConnections()
			}
		}
		w.after(time.Second)
		if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
			w.Errorf("twenty minutes later the cache holds %v, the server %v; checks %d", got, want, w.health().Checks)
		}
	})
}

// TestP16_ARewindAfterDeletes sets a server back whose last changes were deletes of objects that it does
// not have at the earlier state either, so that they say nothing about its history. Meanwhile it passes
// the version that was reached.
func TestP16_ARewindAfterDeletes(t *testing.T) {
	for _, deletes := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(deletes, " deletes"), func(t *testing.T) {
			property(t, func(w *world) {
				w.haveNamespaces("elsewhere")
				w.create("a", "1")
				w.follow().Rewind(true)
				w.start()
				w.after(3 * time.Minute)
				backup := w.server.Snapshot()
				w.update("a", "lost")
				for i := range deletes {
					w.create(fmt.Sprintf("lost%d", i), "1")
				}
				for i := range deletes {
					w.remove(fmt.Sprintf("lost%d", i))
				}
				w.after(time.Second)
				w.server.SetAvailable(false)
				w.server.Rewind(backup)
				for i := range 20 {
					w.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
				}
				w.after(20 * time.Second)
				w.server.SetAvailable(true)
				w.after(time.Hour)
				if got, want := w.probe.state(), w.serverState(); !maps.Equal(got, want) {
					w.Errorf("an hour later the cache holds %v, the server %v; checks %d", got, want, w.health().Checks)
				}
			})
		})
	}
}

// TestP16_ARewindAfterASlotHasGone sets a server back by more than the last change, whose slot has gone.
func TestP16_ARewindAfterASlotHasGone(t *testing.T) {
	for _, remove := range []bool{false, true} {
		t.Run(fmt.Sprint("remove ", remove), func(t *testing.T) {
			withSlots(t, tidings.FactoryOptions{}, tidings.AllSlots(), func(s *slotted) {
				s.haveNamespaces("elsewhere")
				s.have(10)
				l := s.follow()
				l.Rewind(true)
				s.start()
				s.after(3 * time.Minute)
				backup := s.server.Snapshot()
				for i := range 5 {
					s.update(fmt.Sprintf("o%03d", i), "lost")
				}
				s.create("last", "lost")
				s.after(time.Second)
				if remove {
					var set tidings.SlotSet
					set.Add(tidings.ByUID.Of(s.uids["last"], ""))
					s.slots.Remove(set)
				}
				s.after(3 * time.Minute) // bookmarks
				s.server.SetAvailable(false)
				s.server.Rewind(backup)
				for i := range 20 {
					s.createIn("elsewhere", fmt.Sprintf("x%d", i), "1")
				}
				s.after(20 * time.Second)
				s.server.SetAvailable(true)
				s.after(time.Hour)
				s.agree(l)
			})
		})
	}
}
