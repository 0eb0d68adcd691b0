package entries

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

const entryOfTests = 7

// lifeOf describes the life of the entry of a test, and the beginning of a call of a key of it.
func lifeOf(t *testing.T, states *States) string {
	t.Helper()
	c := &Call{Entry: entryOfTests, Abort: func(error) {}}
	begun, parked := states.Begin("ns/key", c)
	if begun {
		states.End(c)
	}
	e := &states.of[entryOfTests]
	text := [...]string{"left", "waiting", "open"}[e.phase]
	switch {
	case e.shut:
		text += ", shut"
	case e.wait != nil:
		text += " in a run"
	}
	if begun != (text == "open") || parked != (text == "open, shut") {
		t.Errorf("%s: a call begins: %v, is parked: %v", text, begun, parked)
	}
	served, opened, shut := states.Sets()
	if of := slot.Of(entryOfTests); served == of != (e.phase != left) || opened == of != (e.phase == open) || shut == of != e.shut ||
		states.IsOpen(entryOfTests) != (e.phase == open) {
		t.Errorf("%s: served %v, open %v, shut %v", text, served, opened, shut)
	}
	return text
}

// TestS2_TheLifeOfAnEntry has each state and what the handler may do to it.
func TestS2_TheLifeOfAnEntry(t *testing.T) {
	of, given := slot.Of(entryOfTests), []slot.Owned{{Number: entryOfTests, Versions: map[string]string{"pods": "5"}}}
	var w *Wait
	events := map[string]func(*States){
		"serve": func(states *States) { states.Serve(given) },
		"expect": func(states *States) {
			for _, w = range states.Expect() { // nothing else is served
			}
		},
		"reach":   func(states *States) { states.Reach(w, of) },
		"restart": (*States).Restart,
		"shut":    func(states *States) { states.Shut(of) },
		"unshut":  func(states *States) { states.Unshut(of) },
		"drop":    func(states *States) { states.Drop(of) },
	}
	for name, row := range map[string]struct {
		way  []string // that leads to the state
		want map[string]string
	}{
		"left": {nil, map[string]string{
			"serve": "waiting", "expect": "left", "reach": "left", "restart": "left", "shut": "left", "unshut": "left", "drop": "left",
		}},
		"waiting": {[]string{"serve"}, map[string]string{
			"serve": "waiting", "expect": "waiting in a run", "reach": "waiting", "restart": "waiting",
			"shut": "waiting, shut", "unshut": "waiting", "drop": "left",
		}},
		"waiting in a run": {[]string{"serve", "expect"}, map[string]string{
			"serve": "waiting", "expect": "waiting in a run", "reach": "open", "restart": "waiting",
			"shut": "waiting, shut", "unshut": "waiting in a run", "drop": "left",
		}},
		"waiting, shut": {[]string{"serve", "expect", "shut"}, map[string]string{
			"serve": "waiting", "expect": "waiting, shut", "reach": "open, shut", "restart": "waiting, shut",
			"shut": "waiting, shut", "unshut": "waiting in a run", "drop": "left",
		}},
		"open": {[]string{"serve", "expect", "reach"}, map[string]string{
			"serve": "waiting", "expect": "open", "reach": "open", "restart": "waiting",
			"shut": "open, shut", "unshut": "open", "drop": "left",
		}},
		"open, shut": {[]string{"serve", "expect", "reach", "shut"}, map[string]string{
			"serve": "waiting", "expect": "open, shut", "reach": "open, shut", "restart": "waiting, shut",
			"shut": "open, shut", "unshut": "open", "drop": "left",
		}},
	} {
		for event, want := range row.want {
			states := &States{Whole: Divided}
			w = &Wait{Entries: of}
			for _, step := range row.way {
				events[step](states)
			}
			if got := lifeOf(t, states); got != name {
				t.Fatalf("the state is %q, want %q", got, name)
			}
			if events[event](states); lifeOf(t, states) != want {
				t.Errorf("%s, %s: %q, want %q", name, event, lifeOf(t, states), want)
			}
		}
	}
}

// TestS2_KeysThatAreParked are returned once, by what ends that they wait for the entry.
func TestS2_KeysThatAreParked(t *testing.T) {
	of, given := slot.Of(entryOfTests), []slot.Owned{{Number: entryOfTests}}
	for name, end := range map[string]func(*States) []string{
		"unshut": func(states *States) []string { return states.Unshut(of) },
		"serve":  func(states *States) []string { return states.Serve(given) },
		"drop":   func(states *States) []string { return states.Drop(of) },
	} {
		states := &States{Whole: Divided}
		states.Serve(given)
		states.Reach(states.Expect()[0], of)
		states.Shut(of)
		states.Begin("ns/due", &Call{Entry: entryOfTests})
		states.Park(entryOfTests, "ns/held")
		states.Park(entryOfTests, "ns/due")
		got := slices.Sorted(slices.Values(end(states)))
		if want := []string{"ns/due", "ns/held"}; !slices.Equal(got, want) {
			t.Errorf("%s returns %q, want %q", name, got, want)
		}
		if again := end(states); len(again) > 0 {
			t.Errorf("%s returns %q again", name, again)
		}
	}
}

// TestS2_WaitsOfAnEntry: entries with versions are waited for together, and those without. A wait opens
// only what is still part of it, and tells the versions of nothing else.
func TestS2_WaitsOfAnEntry(t *testing.T) {
	states := &States{Whole: Divided}
	states.Serve([]slot.Owned{
		{Number: 1, Versions: map[string]string{"pods": "5", "secrets": "2"}},
		{Number: 2, Versions: map[string]string{"pods": "12"}}, {Number: 3}, {Number: 4},
	})
	waits := states.Expect()
	if len(waits) != 2 || waits[0].Entries != slot.Of(1, 2) || waits[1].Entries != slot.Of(3, 4) || waits[1].Versions != nil ||
		!maps.Equal(waits[0].Versions, map[string]string{"pods": "12", "secrets": "2"}) {
		t.Fatalf("the waits are %+v", waits)
	}
	if len(states.Expect()) > 0 {
		t.Error("they are waited for twice")
	}
	known := func(n int) bool { c, _ := states.Calls(n); return c.Known }
	if !known(1) || known(3) || known(4) {
		t.Error("known are the versions of 3 and 4, or not those of 1")
	}
	states.Drop(slot.Of(2, 4))
	states.Serve([]slot.Owned{{Number: 4}})
	states.Know(waits[1])
	if !known(3) || known(4) {
		t.Error("known are those of 4, or not those of 3")
	}
	opened, others := states.Reach(waits[1], slot.Of(4))
	if !opened.IsEmpty() || !others {
		t.Errorf("%v are open, and others are left: %v", opened, others)
	}
	if opened, others = states.Reach(waits[1], slot.All()); opened != slot.Of(3) || others {
		t.Errorf("%v are open, and others are left: %v", opened, others)
	}
}

// TestS2_CallsOfAnEntry outlast its owners, as do writes without an answer.
func TestS2_CallsOfAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		states, of := &States{Whole: Divided}, slot.Of(entryOfTests)
		given := []slot.Owned{{Number: entryOfTests, Versions: map[string]string{}}}
		began := time.Now()
		check := func(opened, known bool, running int, oldest time.Time) {
			t.Helper()
			c, _ := states.Calls(entryOfTests)
			if c.Opened != opened || c.Known != known || c.Running != running || !c.Oldest.Equal(oldest) {
				t.Errorf("the calls are %+v", c)
			}
		}
		states.Serve(given)
		states.Reach(states.Expect()[0], of)
		check(false, true, 0, time.Time{})
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &Call{Entry: entryOfTests, Began: began.Add(time.Second), Abort: cancel}
		states.Begin("ns/key", c)
		check(false, false, 1, c.Began)
		states.Note(entryOfTests, nil)
		check(true, false, 1, c.Began)
		cause := errors.New("the process leaves")
		states.Abort(slot.Of(entryOfTests+1), errors.New("another entry"))
		if states.Abort(of, cause); context.Cause(ctx) != cause {
			t.Errorf("the context ends with %v", context.Cause(ctx))
		}
		states.Note(entryOfTests, []guard.Write{
			{Sent: began, Unknown: true, NotBefore: began.Add(time.Minute)},
			{Sent: began, Unknown: true}, {Sent: began, NotBefore: began.Add(time.Hour)},
		})
		check(true, false, 2, began)
		states.Restart()
		states.Drop(of)
		check(false, false, 2, began)
		states.Serve(given)
		states.End(c)
		check(false, true, 1, began)
		time.Sleep(time.Minute)
		check(false, true, 0, time.Time{})
	})
}
