package tidingstest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tidings-go/tidings"
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
		"cut-connections": r.server.CutConnections, "restart": r.server.Restart, "compact": r.server.Compact,
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
		// The informer is away meanwhile, so that it has to find out by itself.
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

// statesMoveForward looks at the cache from within handlers, while all that can take it
// back happens: lists, replays, and lists that race with watches.
func statesMoveForward(r *rig) {
	r.create("hot")
	key := r.key("hot")
	highest := 0
	r.follow("looker", func(e told) {
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
			r.Errorf("P03: a list has states of different times: %s is %s, %s is %s", a, state[a], b, state[b])
		}
	}
	r.start()
	f := r.follow("lister", func(told) { check() }, tidings.HandlerOptions{})
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
	r.follow("looker", func(e told) {
		if e.Type == tidings.Deleted {
			if got, keys := r.get(e.key), r.indexed(number(e.old)); got != "" || len(keys) != 0 {
				r.Errorf("P06: at %v the cache holds %q and the index %q", e, got, keys)
			}
			return
		}
		if got, keys := r.get(e.key), r.indexed(number(e.new)); got != e.new || !slices.Equal(keys, []string{e.key}) {
			r.Errorf("P06: at %v the cache holds %q and the index %q", e, got, keys)
		}
		if e.Type == tidings.Updated && e.old != e.new && len(r.indexed(number(e.old))) != 0 {
			r.Errorf("P06: at %v the index still has the state before", e)
		}
	}, tidings.HandlerOptions{})
	r.start()
	step := func() {
		r.await("P06", func() string {
			r.mu.Lock()
			followers := slices.Clone(r.followers)
			r.mu.Unlock()
			for _, f := range followers {
				if difference := differ(f.name, f.holds(), r.world("")); difference != "" {
					return difference
				}
			}
			return ""
		})
	}
	step()
	for range 5 {
		r.update("a")
		step()
	}
	r.remove("a")
	step()
}

// indexed returns what the index has under a number.
func (r *rig) indexed(n int) []string {
	keys, err := r.informer.Indexed(fmt.Sprint(n))
	if err != nil {
		r.Errorf("P06: the index: %v", err)
	}
	return keys
}

// relistIsOneStep has the informer list while the world is another one.
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
	f := r.follow("looker", func(e told) {
		mu.Lock()
		defer mu.Unlock()
		if after == nil || !strings.HasPrefix(e.key, first+"/") {
			return
		}
		if difference := differ("the cache", r.cached(first), after); difference != "" {
			r.Errorf("P08: at %v %s", e, difference)
		}
	}, tidings.HandlerOptions{})
	r.awaitClosed("the handler to sync", f.registration.Synced())
	f.take()
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
	r.deletesFirst(f)
	key := func(name string) string { return r.key(name + ".0") }
	r.expect("P08", f,
		fmt.Sprintf("Added %s %d", key("another"), n[1]),
		fmt.Sprintf("Deleted %s tombstone %d", key("object-3"), 4), fmt.Sprintf("Deleted %s tombstone %d", key("object-7"), 8),
		fmt.Sprintf("Updated %s %d→%d", key("object-0"), 1, n[0]))
	if r.gate.lists() == lists {
		r.Errorf("P08: the informer did not list")
	}
}

// deletesFirst checks that, and sorts the events.
func (r *rig) deletesFirst(f *follower) {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := false
	for _, e := range f.events {
		if e.Type == tidings.Deleted && changed {
			r.Errorf("P08: %v came after changes", e)
		}
		changed = changed || e.Type != tidings.Deleted
	}
	slices.SortStableFunc(f.events, func(a, b told) int { return strings.Compare(a.String(), b.String()) })
}

// anotherObject deletes and creates under one key: both are told, and differ in UID.
func anotherObject(r *rig) {
	first := r.create("a")
	r.start()
	uid := r.uid("a")
	f := r.follow("looker", nil, tidings.HandlerOptions{})
	r.awaitClosed("the handler to sync", f.registration.Synced())
	r.remove("a")
	second := r.create("a")
	r.fence(f)
	key := r.key("a")
	var events []told
	for _, e := range f.take() {
		if e.key == key {
			events = append(events, e)
		}
	}
	var texts []string
	for _, e := range events {
		texts = append(texts, e.String())
	}
	all := []string{fmt.Sprintf("Added %s initial %d", key, first), fmt.Sprintf("Deleted %s %d", key, first), fmt.Sprintf("Added %s %d", key, second)}
	if !slices.Equal(texts, all) {
		r.Fatalf("P19: told %q, want %q", texts, all)
	}
	if events[1].oldUID != uid || events[2].newUID != r.uid("a") {
		r.Errorf("P19: deleted %s and added %s, want %s and %s", events[1].oldUID, events[2].newUID, uid, r.uid("a"))
	}
}

// uid returns the UID of the object of a name.
func (r *rig) uid(name string) string {
	key := r.key(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.uids[key]
}

// anotherObjectListed replaces an object while the informer is away.
func anotherObjectListed(r *rig) {
	r.create("a")
	r.start()
	before := r.uid("a")
	r.fence()
	r.witness.take()
	r.offline(func() {
		r.remove("a")
		r.create("a")
	})
	r.agree("P19")
	var changes []string
	for _, e := range r.witness.take() {
		if e.key == r.key("a") {
			changes = append(changes, fmt.Sprintf("%v %s→%s", e.Type, e.oldUID, e.newUID))
		}
	}
	after := r.uid("a")
	one, two := []string{fmt.Sprintf("Updated %s→%s", before, after)}, []string{"Deleted " + before + "→", "Added →" + after}
	if !slices.Equal(changes, one) && !slices.Equal(changes, two) {
		r.Errorf("P19: told %q, want %q or %q", changes, one, two)
	}
}
