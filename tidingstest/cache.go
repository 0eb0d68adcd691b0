package tidingstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
)

func cacheHolds(r *rig) {
	r.create("a")
	r.create("b")
	r.start()
	r.agree("P01")
	r.create("c")
	r.update("a")
	r.remove("b")
	r.create("b")
	r.create("brief")
	r.remove("brief")
	r.agree("P01")
}

func cacheHoldsAfterCuts(r *rig) {
	r.create("a")
	r.create("b")
	r.start()
	r.gate.cut()
	r.update("a")
	r.remove("b")
	r.create("b")
	r.agree("P01")
	r.offline(func() {
		r.remove("b")
		r.update("a")
		r.create("c")
	})
	r.agree("P01")
	r.gate.cut()
	r.remove("c")
	r.agree("P01")
}

func cacheHoldsAfterFaults(r *rig) {
	faults := map[string]func() error{
		"cut-connections": r.server.CutConnections, "restart": r.server.Restart,
		"compact": r.server.Compact,
	}
	for i := range 3 {
		r.create(fmt.Sprint("gone-", i))
	}
	r.create("a")
	r.start()
	for i, name := range slices.Sorted(maps.Keys(faults)) {
		fault := faults[name]
		if fault == nil {
			continue
		}
		r.update("a")
		// Meanwhile the informer has no connection.
		r.gate.close()
		r.remove(fmt.Sprint("gone-", i))
		r.create(name)
		if err := fault(); err != nil {
			r.Fatalf("%s: %v", name, err)
		}
		r.gate.change(func() { r.gate.shut = false })
		r.update("a")
		r.agree("P01 after " + name)
	}
}

// statesMoveForward reads the cache in handlers, during lists, replays, and lists that race
// with watches.
func statesMoveForward(r *rig) {
	r.create("hot")
	key := r.key("hot")
	highest := 0
	r.follow("looker", func(e follow.Event) {
		n := number(r.get(key))
		if n < highest {
			r.Errorf("P02: the cache went back from %d to %d", highest, n)
		}
		highest = max(highest, n)
	}, tidings.HandlerOptions{})
	r.start()
	for round := range 4 {
		r.update("hot")
		switch round % 3 {
		case 1:
			r.gate.cut()
		case 2:
			r.offline(func() { r.update("hot") })
		}
		r.update("hot")
		r.update("hot")
		r.agree("P02")
	}
}

// listsAreOfOneState writes to two objects in turn, so that their numbers are always
// neighbours.
func listsAreOfOneState(r *rig) {
	a, b := r.key("a.0"), r.key("b.0")
	r.create("a.0")
	r.create("b.0")
	check := func() {
		state := r.cached("")
		if state[a] == "" || state[b] == "" {
			r.Errorf("P03: a list has %v", state)
			return
		}
		if apart := number(state[a]) - number(state[b]); apart != 1 && apart != -1 {
			r.Errorf("P03: a list has states of different times: %s is %s, %s is %s",
				a, state[a], b, state[b])
		}
	}
	r.start()
	f := r.follow("lister", func(follow.Event) { check() }, tidings.HandlerOptions{})
	for range 20 {
		r.update("a.0")
		check()
		r.update("b.0")
		check()
	}
	r.agree("P03", f)
}

func heldListStays(r *rig) {
	r.create("a")
	r.create("b")
	r.start()
	r.agree("P03")
	before := r.world("")
	held := r.informer.List()
	r.update("a")
	r.remove("b")
	r.create("c")
	r.agree("P03")
	if difference := differ("the list of before", states(held), before); difference != "" {
		r.Errorf("P03: what was: %s", difference)
	}
}

// cacheFirst writes in step with a handler, so that the cache cannot be ahead of it.
func cacheFirst(r *rig) {
	r.create("a")
	f := r.follow("looker", func(e follow.Event) {
		got, keys := r.get(e.Key), r.indexed(number(e.New))
		if e.Type == tidings.Deleted {
			keys = r.indexed(number(e.Old))
		}
		if got != e.New || slices.Contains(keys, e.Key) != (e.New != "") || len(keys) > 1 {
			r.Errorf("P06: at %v the cache holds %q and the index %q", e, got, keys)
		}
		if e.Type == tidings.Updated && e.Old != e.New && len(r.indexed(number(e.Old))) != 0 {
			r.Errorf("P06: at %v the index still has the state before", e)
		}
	}, tidings.HandlerOptions{})
	r.start()
	r.agree("P06", f)
	for range 5 {
		r.update("a")
		r.agree("P06", f)
	}
	r.remove("a")
	r.agree("P06", f)
}

// indexed returns the keys that the index has under a number.
func (r *rig) indexed(n int) []string {
	keys, err := r.informer.Indexed(fmt.Sprint(n))
	if err != nil {
		r.Errorf("P06: the index: %v", err)
	}
	return keys
}

// relistIsOneStep changes objects while the informer has no connection, so that it lists
// again.
func relistIsOneStep(r *rig) {
	for i := range 8 {
		r.create(fmt.Sprintf("object-%d.0", i))
	}
	r.create("elsewhere")
	r.start()
	r.agree("P08")
	first := r.namespaces[0]
	before, after := r.world(first), map[string]string(nil)
	var mu sync.Mutex // guards after, which the handler reads
	f := r.follow("looker", func(e follow.Event) {
		mu.Lock()
		defer mu.Unlock()
		if after == nil || !strings.HasPrefix(e.Key, first+"/") {
			return
		}
		if difference := differ("the cache", r.cached(first), after); difference != "" {
			r.Errorf("P08: at %v %s", e, difference)
		}
	}, tidings.HandlerOptions{})
	r.awaitClosed("the handler to sync", f.registration.Synced())
	f.Take()
	r.gate.change(func() {
		r.gate.onList = func() {
			if difference := differ("the cache", r.cached(first), before); difference != "" {
				r.Errorf("P08: while the list is on its way, %s", difference)
			}
		}
	})
	lists := r.gate.lists()
	var n [2]int
	r.offline(func() {
		r.remove("object-7.0")
		r.remove("object-3.0")
		n[0] = r.update("object-0.0")
		n[1] = r.create("another.0")
		mu.Lock()
		after = r.world(first)
		mu.Unlock()
	})
	r.agree("P08", f)
	events := f.Take()
	if !deletesFirst(events) {
		r.Errorf("P08: of the events %v deletes are not the first", events)
	}
	slices.SortStableFunc(events, func(a, b follow.Event) int {
		return strings.Compare(a.String(), b.String())
	})
	key := func(name string) string { return r.key(name + ".0") }
	r.expect("P08", events,
		fmt.Sprintf("Added %s %d", key("another"), n[1]),
		fmt.Sprintf("Deleted %s tombstone %d", key("object-3"), 4),
		fmt.Sprintf("Deleted %s tombstone %d", key("object-7"), 8),
		fmt.Sprintf("Updated %s %d→%d", key("object-0"), 1, n[0]))
	if r.gate.lists() == lists {
		r.Errorf("P08: the informer did not list")
	}
}

// oldList changes objects while the answer to a list is on its way.
func oldList(r *rig) {
	for n := range 4 {
		r.create(fmt.Sprintf("object-%d.0", n))
	}
	r.start()
	held, proceed := r.gate.holdLists()
	r.offline(func() {
		r.remove("object-0.0")
		r.update("object-1.0")
	})
	r.await("P08", func() string {
		if held() == 0 {
			return "the informer has not listed"
		}
		return ""
	})
	r.settle() // the server has answered
	r.update("object-1.0")
	r.remove("object-2.0")
	r.remove("object-3.0")
	r.create("object-3.0")
	r.create("object-0.0")
	proceed()
	r.agree("P08")
}

func deletesFirst(events []follow.Event) bool {
	return slices.IsSortedFunc(events, func(a, b follow.Event) int {
		switch {
		case a.Type == tidings.Deleted && b.Type != tidings.Deleted:
			return -1
		case b.Type == tidings.Deleted && a.Type != tidings.Deleted:
			return 1
		}
		return 0
	})
}

// anotherObject deletes and creates under one key: the handler receives both.
func anotherObject(r *rig) {
	first := r.create("a.0")
	r.start()
	uid := follow.UID(r.holds("a.0"))
	f := r.follow("looker", nil, tidings.HandlerOptions{})
	r.awaitClosed("the handler to sync", f.registration.Synced())
	r.remove("a.0")
	second := r.create("a.0")
	r.fence(f)
	key := r.key("a.0")
	events := f.Take()
	r.expect("P19", events, fmt.Sprintf("Added %s initial %d", key, first),
		fmt.Sprintf("Deleted %s %d", key, first), fmt.Sprintf("Added %s %d", key, second))
	for _, e := range events {
		want := uid
		if e.Type == tidings.Added && !e.Initial {
			want = follow.UID(r.holds("a.0"))
		}
		if e.Key == key && follow.UID(e.Old+e.New) != want {
			r.Errorf("P19: %v has the UID %q, want %q", e, follow.UID(e.Old+e.New), want)
		}
	}
}

// anotherObjectListed replaces an object while the informer has no connection.
func anotherObjectListed(r *rig) {
	r.create("a")
	r.start()
	before := follow.UID(r.holds("a"))
	r.fence()
	r.witness.Take()
	r.offline(func() {
		r.remove("a")
		r.create("a")
	})
	r.agree("P19")
	var changes []string
	for _, e := range r.witness.takeOf(r.key("a")) {
		changes = append(changes, fmt.Sprint(e.Type, follow.UID(e.Old), "→", follow.UID(e.New)))
	}
	after := follow.UID(r.holds("a"))
	one := []string{fmt.Sprint(tidings.Updated, before, "→", after)}
	two := []string{fmt.Sprint(tidings.Deleted, before, "→"), fmt.Sprint(tidings.Added, "→", after)}
	if !slices.Equal(changes, one) && !slices.Equal(changes, two) {
		r.Errorf("P19: received %q, want %q or %q", changes, one, two)
	}
}
