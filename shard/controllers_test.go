package shard

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/shard/internal/handover"
)

// sixControllers is the knob of a process that can lead six controllers as a whole.
var sixControllers = leading("k0", "k1", "k2", "k3", "k4", "k5")

// wantEachLeads checks that each process leads so many controllers, and that all are led.
func (w *world) wantEachLeads(when string, n int, processes ...*process) {
	w.Helper()
	led := w.wantLed(when, processes...)
	counts := map[string]int{}
	for _, name := range led {
		counts[name]++
	}
	for _, p := range processes {
		if counts[p.name] != n {
			w.Errorf("%s: %s leads %d controllers, want %d: %v", when, p.name, counts[p.name], n, led)
		}
	}
}

func TestS1_MembersShareControllersWithoutSlots(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", sixControllers)
		w.covered(a)
		time.Sleep(5 * time.Second)
		w.wantEachLeads("alone", 6, a)
		b, c := w.start("b", "1", sixControllers), w.start("c", "1", sixControllers)
		time.Sleep(time.Minute)
		w.wantEachLeads("three", 2, a, b, c)
		h := c.Health()
		if h.Covered != 1 || h.Nobody != "" || h.NotReady != "" {
			t.Errorf("the health is %+v", h)
		}
		for _, m := range h.Members {
			if len(m.Controllers) != 2 {
				t.Errorf("the member is %+v", m)
			}
		}
		crashed := time.Now()
		b.crash()
		for len(w.led(a, c)) < 6 && time.Since(crashed) < time.Minute {
			time.Sleep(100 * time.Millisecond)
		}
		w.wantBetween("the take-over", time.Since(crashed), duration*2/3, takeOverBound)
		left := time.Now()
		a.leave()
		w.wantBetween("the leave", time.Since(left), 0, 2*time.Second)
		w.wantEachLeads("one", 6, c)
	})
}

// TestS2_ALongCallOfAControllerHoldsUpNoOther: it moves once the call has ended.
func TestS2_ALongCallOfAControllerHoldsUpNoOther(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", sixControllers)
		w.covered(a)
		time.Sleep(5 * time.Second)
		a.call(Set{4: 1<<6 - 1}, 10*time.Minute)
		b := w.start("b", "1", sixControllers)
		time.Sleep(5 * time.Minute)
		w.wantEachLeads("beside the calls", 6, a)
		if b.serves() < 110 || a.longestShut > time.Second {
			t.Errorf("b serves %d slots; an entry was shut for %v", b.serves(), a.longestShut)
		}
		time.Sleep(8 * time.Minute)
		w.wantEachLeads("after them", 3, a, b)
	})
}

// TestS4_ControllersThatComeAndGo with a generation: the newer program has one more, and lacks
// another.
func TestS4_ControllersThatComeAndGo(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", leading("x", "y"))
		w.covered(a)
		time.Sleep(5 * time.Second)
		b := w.start("b", "2", leading("y", "z"))
		time.Sleep(time.Minute)
		if led := w.led(a, b); !maps.Equal(led, map[string]string{"x": "a", "y": "a", "z": "b"}) {
			t.Errorf("beside each other they lead %v", led)
		}
		a.leave()
		time.Sleep(10 * time.Second)
		if led := w.led(b); !maps.Equal(led, map[string]string{"y": "b", "z": "b"}) {
			t.Errorf("the newer one leads %v", led)
		}
		for _, e := range b.Map()[Count:] {
			if e.Controller == "x" {
				t.Errorf("the map has %+v", e)
			}
		}
		if h := b.Health(); h.Covered != 1 {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS4_AControllerThatTheNewerVersionLacksIsLedByTheOlder, while a member of that lives.
func TestS4_AControllerThatTheNewerVersionLacksIsLedByTheOlder(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1", leading("x", "y")), w.start("b", "1", leading("x", "y"))
		time.Sleep(time.Minute)
		c := w.start("c", "2", leading("x"))
		time.Sleep(time.Minute)
		leaver, stays := a, b
		if w.led(a)["y"] == "" {
			leaver, stays = b, a
		}
		leaver.leave()
		time.Sleep(6 * time.Second)
		led := w.wantLed("after the leave", stays, c)
		if h := stays.Health(); led["y"] != stays.name || h.Covered != 1 {
			t.Errorf("they lead %v: %+v", led, h)
		}
	})
}

// TestS5_AControllerThatItsOwnerCannotServeIsLedByAnother, while all others stay.
func TestS5_AControllerThatItsOwnerCannotServeIsLedByAnother(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1", sixControllers), w.start("b", "1", sixControllers)
		time.Sleep(time.Minute)
		w.wantEachLeads("before", 3, a, b)
		failing := a.leadsNow()[0]
		began := time.Now()
		a.set(lacks(failing))
		time.Sleep(5 * time.Minute)
		led := w.wantLed("while it fails", a, b)
		if led[failing] != "b" {
			t.Errorf("%s fails on a; they lead %v, and a %s", failing, led, memberOf(b.Health(), a).Does)
		}
		a.set(recovers)
		time.Sleep(10 * time.Minute)
		w.wantEachLeads("after the recovery", 3, a, b)
		w.wantMoved("in all", began, Count, 2)
	})
}

// TestS5_AControllerWithoutAnEntryHasNobody: the members can lead more than the map has room for.
func TestS5_AControllerWithoutAnEntryHasNobody(t *testing.T) {
	bubble(t, func(w *world) {
		names := func(from, to int) (names []string) {
			for i := from; i < to; i++ {
				names = append(names, fmt.Sprintf("c%02d", i))
			}
			return names
		}
		logged := &strings.Builder{}
		a := w.start("a", "1", leading(names(0, 60)...),
			with(func(o *Options) { o.Logger = slog.New(slog.NewTextHandler(logged, nil)) }))
		w.covered(a)
		time.Sleep(10 * time.Second)
		if h := a.Health(); h.Covered != 1 || h.Nobody != "" {
			t.Errorf("the health is %+v", h)
		}
		b := w.start("b", "1", leading(names(2, 66)...))
		time.Sleep(time.Minute)
		for _, p := range []*process{a, b} {
			if h := p.Health(); h.Covered != 1-2./322 || h.Nobody != "c64,c65" || h.UncoveredFor < 50*time.Second {
				t.Errorf("the health is %+v", h)
			}
		}
		synctest.Wait()
		if !strings.Contains(logged.String(), `unlisted="[c64 c65]"`) {
			t.Errorf("logged is\n%s", logged)
		}
		w.wantProblems(w.read(), "nobody leads c64, c65.")
	})
}

// TestS3_AControllerThatNobodyHereKnowsIsNotLed makes a member the owner of an unknown controller.
func TestS3_AControllerThatNobodyHereKnowsIsNotLed(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", leading("x"))
		w.covered(a)
		time.Sleep(5 * time.Second)
		w.edit(func(m *handover.Map) {
			m.Controllers = append(m.Controllers, "stranger")
			m.Entries = append(m.Entries, handover.Entry{Owner: m.Entries[0].Owner, Epoch: 1})
		})
		time.Sleep(10 * time.Second)
		w.wantLed("beside the stranger", a)
		w.covered(a)
		if h := a.Health(); h.NotReady != "stranger" && h.Nobody != "stranger" {
			t.Errorf("the health is %+v", h)
		}
	})
}

// TestS1_AMapWithFewerEntriesIsMadeAnew removes the controllers from the map.
func TestS1_AMapWithFewerEntriesIsMadeAnew(t *testing.T) {
	bubble(t, func(w *world) {
		a, b := w.start("a", "1", sixControllers), w.start("b", "1", sixControllers)
		time.Sleep(time.Minute)
		w.restored = true
		w.edit(func(m *handover.Map) { m.Entries, m.Controllers = m.Entries[:Count], nil })
		time.Sleep(time.Minute)
		w.covered(a, b)
		w.wantEachLeads("anew", 3, a, b)
	})
}

// TestS1_ADeletedMapWhileAControllerMoves: the next map has no entry for the controller at first.
func TestS1_ADeletedMapWhileAControllerMoves(t *testing.T) {
	bubble(t, func(w *world) {
		a := w.start("a", "1", sixControllers)
		w.covered(a)
		time.Sleep(5 * time.Second)
		b := w.start("b", "1", sixControllers, taking(10*time.Second))
		for n := 0; a.Health().Moving == 0 && n < 1000; n++ {
			time.Sleep(50 * time.Millisecond)
		}
		w.restored = true
		w.remove("rollout")
		time.Sleep(2 * time.Minute)
		w.covered(a, b)
		w.wantEachLeads("anew", 3, a, b)
		if names := slices.Sorted(slices.Values(a.stored())); !slices.Equal(names, a.leads) {
			t.Errorf("the map has %v", names)
		}
	})
}

// stored returns the controllers of the map that the server has.
func (p *process) stored() []string { return p.w.stored().Controllers }
