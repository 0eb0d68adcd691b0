package controller

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/queue"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

const entryOfTests = 7

// lifeOf describes the life of the entry of a test, and the beginning of a call of a key of it.
func lifeOf(t *testing.T, table *entries) string {
	t.Helper()
	c := &calling{slot: entryOfTests, abort: func(error) {}}
	begun, parked := table.begin("ns/key", c)
	if begun {
		table.end(c)
	}
	e := &table.of[entryOfTests]
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
	served, opened, shut := table.sets()
	if of := slot.Of(entryOfTests); served == of != (e.phase != left) || opened == of != (e.phase == open) || shut == of != e.shut ||
		table.isIn(entryOfTests, open) != (e.phase == open) {
		t.Errorf("%s: served %v, open %v, shut %v", text, served, opened, shut)
	}
	return text
}

// TestS2_TheLifeOfAnEntry has each state and what the handler may do to it.
func TestS2_TheLifeOfAnEntry(t *testing.T) {
	of, given := slot.Of(entryOfTests), []slot.Owned{{Number: entryOfTests, Versions: map[string]string{"pods": "5"}}}
	var w *opening
	events := map[string]func(*entries){
		"serve": func(table *entries) { table.serve(given) },
		"expect": func(table *entries) {
			for _, w = range table.expect() { // nothing else is served
			}
		},
		"reach":   func(table *entries) { table.reach(w, of) },
		"restart": (*entries).restart,
		"shut":    func(table *entries) { table.shut(of) },
		"unshut":  func(table *entries) { table.unshut(of) },
		"drop":    func(table *entries) { table.drop(of) },
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
			table := &entries{whole: barrier.NoSlot}
			w = &opening{entries: of}
			for _, step := range row.way {
				events[step](table)
			}
			if got := lifeOf(t, table); got != name {
				t.Fatalf("the state is %q, want %q", got, name)
			}
			if events[event](table); lifeOf(t, table) != want {
				t.Errorf("%s, %s: %q, want %q", name, event, lifeOf(t, table), want)
			}
		}
	}
}

// TestS2_KeysThatAreParked are returned once, by what ends that they wait for the entry.
func TestS2_KeysThatAreParked(t *testing.T) {
	of, given := slot.Of(entryOfTests), []slot.Owned{{Number: entryOfTests}}
	for name, end := range map[string]func(*entries) []string{
		"unshut": func(table *entries) []string { return table.unshut(of) },
		"serve":  func(table *entries) []string { return table.serve(given) },
		"drop":   func(table *entries) []string { return table.drop(of) },
	} {
		table := &entries{whole: barrier.NoSlot}
		table.serve(given)
		table.reach(table.expect()[0], of)
		table.shut(of)
		table.begin("ns/due", &calling{slot: entryOfTests})
		table.park(entryOfTests, "ns/held")
		table.park(entryOfTests, "ns/due")
		got := slices.Sorted(slices.Values(end(table)))
		if want := []string{"ns/due", "ns/held"}; !slices.Equal(got, want) {
			t.Errorf("%s returns %q, want %q", name, got, want)
		}
		if again := end(table); len(again) > 0 {
			t.Errorf("%s returns %q again", name, again)
		}
	}
}

// TestS2_WaitsOfAnEntry: entries with versions are waited for together, and those without. A wait opens
// only what is still part of it, and tells the versions of nothing else.
func TestS2_WaitsOfAnEntry(t *testing.T) {
	table := &entries{whole: barrier.NoSlot}
	table.serve([]slot.Owned{
		{Number: 1, Versions: map[string]string{"pods": "5", "secrets": "2"}},
		{Number: 2, Versions: map[string]string{"pods": "12"}}, {Number: 3}, {Number: 4},
	})
	waits := table.expect()
	if len(waits) != 2 || waits[0].entries != slot.Of(1, 2) || waits[1].entries != slot.Of(3, 4) || waits[1].versions != nil ||
		!maps.Equal(waits[0].versions, map[string]string{"pods": "12", "secrets": "2"}) {
		t.Fatalf("the waits are %+v", waits)
	}
	if len(table.expect()) > 0 {
		t.Error("they are waited for twice")
	}
	known := func(n int) bool { c, _ := table.calls(n); return c.Known }
	if !known(1) || known(3) || known(4) {
		t.Error("known are the versions of 3 and 4, or not those of 1")
	}
	table.drop(slot.Of(2, 4))
	table.serve([]slot.Owned{{Number: 4}})
	table.know(waits[1])
	if !known(3) || known(4) {
		t.Error("known are those of 4, or not those of 3")
	}
	opened, others := table.reach(waits[1], slot.Of(4))
	if !opened.IsEmpty() || !others {
		t.Errorf("%v are open, and others are left: %v", opened, others)
	}
	if opened, others = table.reach(waits[1], slot.All()); opened != slot.Of(3) || others {
		t.Errorf("%v are open, and others are left: %v", opened, others)
	}
}

// TestS2_CallsOfAnEntry outlast its owners, as do writes without an answer.
func TestS2_CallsOfAnEntry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, of := &entries{whole: barrier.NoSlot}, slot.Of(entryOfTests)
		given := []slot.Owned{{Number: entryOfTests, Versions: map[string]string{}}}
		began := time.Now()
		check := func(opened, known bool, running int, oldest time.Time) {
			t.Helper()
			c, _ := table.calls(entryOfTests)
			if c.Opened != opened || c.Known != known || c.Running != running || !c.Oldest.Equal(oldest) {
				t.Errorf("the calls are %+v", c)
			}
		}
		table.serve(given)
		table.reach(table.expect()[0], of)
		check(false, true, 0, time.Time{})
		ctx, cancel := context.WithCancelCause(t.Context())
		c := &calling{slot: entryOfTests, began: began.Add(time.Second), abort: cancel}
		table.begin("ns/key", c)
		check(false, false, 1, c.began)
		table.note(entryOfTests, nil)
		check(true, false, 1, c.began)
		cause := errors.New("the process leaves")
		table.abort(slot.Of(entryOfTests+1), errors.New("another entry"))
		if table.abort(of, cause); context.Cause(ctx) != cause {
			t.Errorf("the context ends with %v", context.Cause(ctx))
		}
		table.note(entryOfTests, []guard.Write{
			{Sent: began, Unknown: true, NotBefore: began.Add(time.Minute)},
			{Sent: began, Unknown: true}, {Sent: began, NotBefore: began.Add(time.Hour)},
		})
		check(true, false, 2, began)
		table.restart()
		table.drop(of)
		check(false, false, 2, began)
		table.serve(given)
		table.end(c)
		check(false, true, 1, began)
		time.Sleep(time.Minute)
		check(false, true, 0, time.Time{})
	})
}

// TestS2_RunsOfATable: Run runs once at a time, and says what has become of the last one.
func TestS2_RunsOfATable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, cause := &entries{whole: barrier.NoSlot, group: NewSlots(ByNamespace)}, errors.New("an informer has stopped")
		state := func(runs, isOver bool, failure error) {
			t.Helper()
			if r, o, f := table.state(); r != runs || o != isOver || f != failure {
				t.Errorf("it runs: %v, is over: %v, with %v", r, o, f)
			}
		}
		state(false, false, nil)
		table.group.claimed = true
		proceed, ended := make(chan error), make(chan error, 1)
		go func() {
			ended <- table.run(t.Context(), func(context.Context) error { return <-proceed })
		}()
		synctest.Wait()
		state(true, false, nil)
		if err := table.run(t.Context(), nil); err != ErrRunning {
			t.Errorf("a second run: %v", err)
		}
		state(true, false, nil)
		proceed <- cause
		synctest.Wait()
		state(false, true, cause)
		if err := table.run(t.Context(), nil); err != ErrRunning {
			t.Errorf("a second run before the group was left: %v", err)
		}
		table.group.Left(errors.New("the group has an error too"))
		if err := <-ended; err != cause {
			t.Errorf("it ends with %v", err)
		}
	})
}

// fakeWork is a controller of tests, which works as f says.
type fakeWork struct {
	slotted
	f func(*work)
}

func (f fakeWork) work(w *work) { f.f(w) }

// TestS3_TurnsOfAGoroutine: one that is at the same odd turn for a minute stands still.
func TestS3_TurnsOfAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, turn := NewSlots(ByNamespace), uint64(0)
		s.members = []slotted{fakeWork{f: func(w *work) { w.turns("a run", turn, "controller %q", "x") }}}
		check := func(after time.Duration, next uint64, want string) {
			t.Helper()
			time.Sleep(after)
			turn = next
			if got := errorText(s.Work().Blocked); got != want {
				t.Errorf("at turn %d it is blocked: %q, want %q", turn, got, want)
			}
		}
		check(0, 0, "")
		check(time.Hour, 0, "") // it does not run
		check(0, 1, "")
		check(59*time.Second, 1, "")
		check(time.Second, 3, "")
		check(59*time.Second, 3, "")
		check(time.Second, 3, `controller "x" has not turned for 1m0s`)
		check(time.Minute, 3, `controller "x" has not turned for 2m0s`)
		check(0, 5, "")
		check(time.Minute, 6, "")
		check(time.Minute, 5, "")
	})
}

// TestS2_PagesOfLists are counted when lists have brought more objects, not when they fail or begin anew.
func TestS2_PagesOfLists(t *testing.T) {
	s, brought := NewSlots(ByNamespace), map[string]int{}
	s.members = []slotted{fakeWork{f: func(w *work) {
		for name, n := range brought {
			w.lists(name, n)
		}
	}}}
	for _, step := range []struct {
		name string
		n    int
		want uint64
	}{
		{"pods", 0, 0}, {"pods", 500, 1}, {"pods", 500, 1}, {"pods", 1000, 2}, {"pods", 0, 2}, {"pods", 500, 3},
		{"secrets", 3, 4}, {"pods", 500, 4},
	} {
		brought[step.name] = step.n
		if got := s.Work().Pages; got != step.want {
			t.Errorf("after %d %s: %d pages, want %d", step.n, step.name, got, step.want)
		}
	}
}

// TestS3_TheHousekeeperTurns while calls may begin.
func TestS3_TheHousekeeperTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRun(t, 1)
		r.turns.Store(1)
		r.goes("housekeeper", r.housekeep)
		time.Sleep(10*housekeeping + housekeeping/2)
		if n := r.turns.Load(); n != 21 {
			t.Errorf("it is at turn %d", n)
		}
		r.stop(nil)
		r.group.Wait()
		if n := r.turns.Load(); n != 0 {
			t.Errorf("after the end it is at turn %d", n)
		}
	})
}

// TestS2_AKeyThatIsParkedWhileItsEntryIsDropped does not stay in the queue: a worker has taken it, and found its
// entry shut.
func TestS2_AKeyThatIsParkedWhileItsEntryIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTestRun(t, 1)
		defer func() {
			r.stop(nil)
			r.queue.Close()
			r.group.Wait()
		}()
		table, of := &entries{group: NewSlots(ByNamespace), whole: slot.Count}, slot.Of(slot.Count)
		r.c.slots.Store(table)
		table.serve([]slot.Owned{{Number: slot.Count, Versions: map[string]string{}}})
		table.reach(table.expect()[0], of)
		r.queue.Add("ns/key", queue.Ask[why]{})
		item, _ := r.queue.Get(0, nil)
		table.shut(of)
		begun, otherwise := r.enter(item.Key, &calling{})
		if begun || otherwise.Result != queue.Park {
			t.Fatalf("a call of a shut entry has begun: %v, or ends with %v", begun, otherwise)
		}
		r.c.settle(table.drop(of))
		r.c.forget(of)
		if err := r.queue.Done(item, otherwise); err != nil {
			t.Fatal(err)
		}
		if s := r.queue.Stats(); s.Parked > 0 {
			t.Errorf("%d keys are parked", s.Parked)
		}
	})
}
