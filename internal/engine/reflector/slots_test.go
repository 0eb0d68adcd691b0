package reflector

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// TestS7_SlotsOfAWatchThatSelects has slots come and go while the server selects. With
// Options.Compare, events are remembered before they are handed on.
func TestS7_SlotsOfAWatchThatSelects(t *testing.T) {
	t.Run("forgotten", func(t *testing.T) { slotsOfAWatchThatSelects(t, nil) })
	t.Run("remembered", func(t *testing.T) { slotsOfAWatchThatSelects(t, delta.CompareDecimal) })
}

func slotsOfAWatchThatSelects(t *testing.T, compare func(a, b string) (int, bool)) {
	t.Helper()
	bb := page("", "6", "+bb@2", "")
	bb.page.Sharded = true
	var held *slot.Holding
	add := func() {
		if err := held.Add(context.Background(), slotsOf("bb")); err != nil {
			panic(err) // its context does not end
		}
	}
	addsLater := func(*Reflector[object], *script) {
		after(2 * time.Second)
		add()
	}
	joins := func(t *testing.T, l *lists) func(*Reflector[object], *script) {
		return func(r *Reflector[object], _ *script) {
			after(2 * time.Second)
			if err := <-merges(t, r, l, slotsOf("bb")); err != nil {
				t.Error(err)
			}
		}
	}
	for name, c := range map[string]scenario{
		"the watch is begun anew from its last version": {
			answers: []answer{listed(), watched("5", sendsAfter(time.Second, "~bb@7"))},
			during:  joins(t, &lists{pages: []answer{bb}}),
			queue:   []string{replaced5, "push : merged bb@2", "push 7: set bb@7"},
		},
		"and not again when the list of the slots has come": {
			answers: []answer{listed(sendsAfter(time.Second, "~a@6")), watched("6")},
			during:  joins(t, &lists{takes: time.Minute, pages: []answer{bb}}),
			queue:   []string{replaced5, "push 6: set a@6", "push : merged bb@2"},
		},
		"events of the watch before do not move the version": {
			answers: []answer{listed(sendsAfter(3*time.Second, "~a@8")), watched("5", sends("~bb@7 ~a@8"))},
			during:  addsLater,
			queue:   []string{replaced5, "push 8: set bb@7 set a@8"},
		},
		"neither do bookmarks": {
			answers: []answer{listed(sendsAfter(3*time.Second, "*8")), watched("5", sends("~bb@7"))},
			during:  addsLater,
			queue:   []string{replaced5, "push 7: set bb@7"},
		},
		"nor what came with the end of a streamed list": {
			j:       &journal{during: add},
			o:       Options[object]{Beside: &lists{takes: time.Minute, pages: []answer{page("", "9", "", "")}}},
			answers: []answer{streamed(sends("+a@3 =5 ~a@8")), watched("5", sends("~bb@7 ~a@8"))},
			queue:   []string{replaced5, "push 8: set bb@7 set a@8"},
		},
		"slots come while the watch begins": {
			answers: []answer{
				listed(failsAfter(time.Second, io.EOF)), {expect: "watch 5", begins: 5 * time.Second}, watched("5"),
			},
			during: joins(t, &lists{pages: []answer{bb}}),
			queue:  []string{replaced5, "push : merged bb@2"},
		},
		"a watch that has brought nothing is not one of a server that was set back": {
			answers: []answer{listed(sends("*6"), failsAfter(time.Second, io.EOF)), watched("6"), watched("6")},
			during: func(r *Reflector[object], s *script) {
				after(3 * time.Second)
				joins(t, &lists{pages: []answer{bb}})(r, s)
			},
			queue: []string{replaced5, "bookmark 6", "push : merged bb@2"},
		},
		"slots go": {
			answers: []answer{listed(sendsAfter(3*time.Second, "~a@8"), sendsAfter(time.Second, "*9"))},
			during: func(r *Reflector[object], _ *script) {
				r.o.Slots.Remove(slotsOf("a"))
			},
			queue: []string{replaced5, "bookmark 8", "bookmark 9"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.shards = true
			held = slot.NewHolding(slot.UID, slotsOf("a"))
			c.o.Slots, c.o.Compare = held, compare
			c.check = func(t *testing.T, r *Reflector[object], s *script, _ *journal) {
				if s.probes != 1 {
					t.Errorf("the server was asked %d times whether it selects", s.probes)
				}
				if h := r.Health(); !h.Sharded || h.LastError != nil || h.Failures > 0 {
					t.Errorf("the health is %+v", h)
				}
			}
			c.run(t)
		})
	}
}

// TestS7_WhoIsAskedForSlots counts the questions whether a server selects, and the watches that it
// is asked to select for.
func TestS7_WhoIsAskedForSlots(t *testing.T) {
	holds := func(key slot.Key, set slot.Set) Options[object] {
		return Options[object]{Slots: slot.NewHolding(key, set)}
	}
	lasted := failsAfter(time.Minute, io.EOF)
	refused := apierrors.NewBadRequest("no selectors")
	for name, c := range map[string]struct {
		scenario
		probes  int
		sharded bool
	}{
		"no slots":        {scenario: scenario{shards: true, answers: []answer{listed()}}},
		"all slots":       {scenario: scenario{shards: true, o: holds(slot.UID, slot.All()), answers: []answer{listed()}}},
		"by namespace":    {scenario: scenario{shards: true, o: holds(slot.Namespace, slot.Of(1)), answers: []answer{streamed(sends("=5"))}}},
		"no slot":         {scenario{shards: true, o: holds(slot.UID, slot.Set{}), answers: []answer{streamed(sends("=5"))}}, 1, true},
		"it selects":      {scenario{shards: true, o: holds(slot.UID, slotsOf("a")), answers: []answer{listed(sends("*6"), lasted), watched("6")}}, 1, true},
		"it does not":     {scenario{o: holds(slot.UID, slotsOf("a")), answers: []answer{listed(sends("*6"), lasted), watched("6")}}, 2, false},
		"it refuses":      {scenario{shards: true, o: holds(slot.UID, slotsOf("a")), answers: []answer{listed(sends("*6"), lasted), failed("watch 6", refused), watched("6")}}, 1, false},
		"it is not there": {scenario{shards: true, o: holds(slot.UID, slotsOf("a")), answers: []answer{listed(sends("*6"), lasted), failed("watch 6", errRefused), watched("6")}}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			c.check = func(t *testing.T, r *Reflector[object], s *script, _ *journal) {
				if s.probes != c.probes || r.Health().Sharded != c.sharded {
					t.Errorf("it was asked %d times, and the watch is sharded: %t; want %d and %t", s.probes,
						r.Health().Sharded, c.probes, c.sharded)
				}
			}
			c.run(t)
		})
	}
}

// TestS7_AListThatIsNotNarrowed comes from a server without the feature: the next watch has no selector.
func TestS7_AListThatIsNotNarrowed(t *testing.T) {
	l := &lists{pages: []answer{page("", "6", "+bb@2 +ccc@3", "")}}
	scenario{
		shards: true, o: Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a"))},
		answers: []answer{listed(), watched("5")},
		during: func(r *Reflector[object], s *script) {
			s.mu.Lock()
			s.shards = false
			s.mu.Unlock()
			// After the list, as the watch may have begun before it.
			if _, err := r.requests.page(context.Background(), l, source.ListOptions{ShardSelector: "any"}); err != nil {
				t.Error(err)
			}
			l.pages = []answer{page("", "6", "+bb@2", "")}
			if err := <-merges(t, r, l, slotsOf("bb")); err != nil {
				t.Error(err)
			}
		},
		queue: []string{replaced5, "push : merged bb@2"},
		check: func(t *testing.T, r *Reflector[object], _ *script, _ *journal) {
			if r.Health().Sharded {
				t.Error("the watch has a selector")
			}
		},
	}.run(t)
}

// TestS6_ObjectsThatAreNotWanted come from a source that leaves them out before they are decoded.
func TestS6_ObjectsThatAreNotWanted(t *testing.T) {
	a := Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a"))}
	inPagesOf := func(o Options[object]) Options[object] {
		o.NoStreamedLists = true
		return o
	}
	looksAt := a
	looksAt.Accept = func(i source.Item[object], _ bool) error {
		if i.Key != "a" {
			return errors.New("nobody wants it")
		}
		return nil
	}
	noName := Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a").Union(slot.Of(slot.UID.Of("", ""))))}
	healthy := unless(func(h health.Watch) bool { return h.LastError != nil || h.Dropped != 0 })
	scenarios(t, map[string]scenario{
		"pages of them are not empty": {
			o: inPagesOf(a), asks: true, queue: []string{replaced5}, check: healthy,
			answers: []answer{
				page(first, "5", "+bb@2", "1"), page(following("1"), "5", "+ccc@2", "2"), page(following("2"), "5", "+dddd@2", "3"),
				page(following("3"), "5", "+eeeee@2", "4"), page(following("4"), "5", "+a@3", ""), watched("5"),
			},
		},
		"pages of them that come twice have no end": {
			o: inPagesOf(a), asks: true, queue: []string{replaced5},
			answers: []answer{
				page(first, "5", "+bb@2", "1"), page(following("1"), "5", "+ccc@2", "2"), page(following("2"), "5", "+ccc@2", "3"),
				page(`list "0" 0 ""`, "5", "+a@3", ""), watched("5"),
			},
			check: unless(func(h health.Watch) bool { return !errors.Is(h.LastError, errRepeatedPage) }),
		},
		"events of a watch": { // of a source that does not leave them out
			o: looksAt, queue: []string{replaced5, "push 8: set a@8"}, check: healthy,
			answers: []answer{listed(sends("~bb@7 ~a@8"))},
		},
		"events during a streamed list": { // of which the key and the UID are not known
			o: noName, asks: true, queue: []string{replaced5}, check: healthy,
			answers: []answer{streamed(sends("+a@3 +bb@2 ~bb@4 =5"))},
		},
	})
}

// TestS6_EventsOnTheWay removes a slot while an event of it waits to be handed on, behind a merge.
func TestS6_EventsOnTheWay(t *testing.T) {
	j := &journal{}
	scenario{
		o: Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a"))}, j: j,
		answers: []answer{listed(sendsAfter(time.Second, "~a@9"))},
		during: func(r *Reflector[object], _ *script) {
			j.full = 3 * time.Second
			merged := merges(t, r, &lists{pages: []answer{page("", "6", "+bb@2", "")}}, slotsOf("bb"))
			after(2 * time.Second) // the event has come
			r.o.Slots.Remove(slotsOf("a"))
			if err := r.Leave(context.Background(), slotsOf("a")); err != nil {
				t.Error(err)
			}
			same(t, "before Leave has returned", j.read(), replaced5, "push : merged bb@2", "bookmark 9")
			if err := <-merged; err != nil {
				t.Error(err)
			}
		},
	}.run(t)
}

// TestS6_MergeIntoAReflectorThatEnds ends Run while slots that have come wait for their list. Nobody
// needs their objects any more.
func TestS6_MergeIntoAReflectorThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{t: t, answers: []answer{listed()}}
		r := New(s, &journal{}, Options[object]{Slots: slot.NewHolding(slot.UID, slotsOf("a"))})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		merged := merges(t, r, &lists{takes: time.Minute}, slotsOf("bb"))
		after(time.Second)
		cancel()
		if err := <-merged; err != nil {
			t.Errorf("Merge: %v", err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := r.Merge(t.Context(), slotsOf("bb")); err != nil {
			t.Errorf("Merge after Run: %v", err)
		}
	})
}
