package tidingstest

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/test/follow"
	"github.com/tidings-go/tidings/source"
)

func everyChange(r *rig) {
	a := r.create("a.0")
	r.start()
	b := r.create("b.0")
	a2, a3 := r.update("a.0"), r.update("a.0")
	r.remove("b.0")
	c := r.create("c.0")
	b2 := r.create("b.0")
	b3 := r.update("b.0")
	r.remove("c.0")
	other := r.create("other")
	r.fence()
	key := r.key
	r.expect("P04", r.witness.Take(),
		fmt.Sprintf("Added %s initial %d", key("a.0"), a),
		fmt.Sprintf("Added %s %d", key("b.0"), b),
		fmt.Sprintf("Updated %s %d→%d", key("a.0"), a, a2),
		fmt.Sprintf("Updated %s %d→%d", key("a.0"), a2, a3),
		fmt.Sprintf("Deleted %s %d", key("b.0"), b),
		fmt.Sprintf("Added %s %d", key("c.0"), c),
		fmt.Sprintf("Added %s %d", key("b.0"), b2),
		fmt.Sprintf("Updated %s %d→%d", key("b.0"), b2, b3),
		fmt.Sprintf("Deleted %s %d", key("c.0"), c),
		fmt.Sprintf("Added %s %d", key("other"), other))
	r.agree("P04")
}

// lateHandlers adds handlers while objects are created, changed and deleted.
func lateHandlers(r *rig) {
	const rounds = 20
	r.create("changing")
	for i := range 3 {
		r.create(fmt.Sprint("early-", i))
	}
	r.start()
	var writer sync.WaitGroup
	keys := make([]string, rounds)
	for i := range keys {
		keys[i] = r.key(fmt.Sprint("object-", i))
	}
	changing, early := r.key("changing"), r.key("early-0")
	writer.Go(func() {
		for i, key := range keys {
			r.check(r.tryCreate(key, nil))
			if i%3 == 0 {
				r.check(r.tryUpdate(changing, nil))
			}
			if i == rounds/2 {
				r.check(r.tryRemove(early))
			}
		}
	})
	var late []*follower
	for i := range rounds {
		late = append(late, r.follow(fmt.Sprint("late handler ", i), nil, tidings.HandlerOptions{}))
	}
	writer.Wait()
	r.agree("P05", late...)
}

// check reports an error. Unlike must, it can be called from any goroutine.
func (r *rig) check(err error) {
	r.Helper()
	if err != nil {
		r.Errorf("%v", err)
	}
}

func initialAdds(r *rig) {
	a := r.create("a.0")
	b := r.create("b.0")
	r.start()
	late := r.follow("late handler", nil, tidings.HandlerOptions{})
	r.awaitClosed("the late handler to sync", late.registration.Synced())
	c := r.create("c.0")
	r.fence(late)
	for _, f := range []*follower{r.witness, late} {
		r.expect("P05", f.Take(), fmt.Sprintf("Added %s initial %d", r.key("a.0"), a),
			fmt.Sprintf("Added %s initial %d", r.key("b.0"), b),
			fmt.Sprintf("Added %s %d", r.key("c.0"), c))
	}
}

// hold is a handler whose calls block until they are released.
type hold struct {
	entered chan struct{} // receives one value for each call
	proceed chan struct{} // a value lets one call return, and the close lets all return
	over    chan struct{} // closed when the test is over
}

func (r *rig) newHold() *hold {
	return &hold{make(chan struct{}, 1000), make(chan struct{}), r.over}
}

func (h *hold) act(follow.Event) {
	h.entered <- struct{}{}
	select {
	case <-h.proceed:
	case <-h.over:
	}
}

// awaitEntered waits until the handler is called.
func (r *rig) awaitEntered(h *hold) {
	r.Helper()
	r.awaitClosed("a call of the handler", h.entered)
}

func syncedAfterInitialSet(r *rig) {
	r.create("a")
	r.create("b")
	early := r.newHold()
	join := func(name string, h *hold) *follower {
		return r.follow(name, func(e follow.Event) {
			if !e.Initial {
				r.Errorf("P07: %s: %v is not marked as initial", name, e)
			}
			h.act(e)
		}, tidings.HandlerOptions{})
	}
	first := join("early handler", early)
	if isClosed(first.registration.Synced()) || isClosed(r.informer.Synced()) {
		r.Errorf("P07: synced before Run")
	}
	r.start()
	late := r.newHold()
	second := join("late handler", late)
	for _, joined := range []struct {
		*follower
		*hold
	}{{first, early}, {second, late}} {
		for range 2 {
			r.awaitEntered(joined.hold)
			r.settle()
			if isClosed(joined.registration.Synced()) {
				r.Errorf("P07: the %s is synced during an add of its initial set", joined.name)
			}
			select {
			case joined.proceed <- struct{}{}:
			case <-time.After(r.server.Patience):
				r.Fatalf("P07: the %s has returned from an add by itself", joined.name)
			}
		}
		r.awaitClosed("the "+joined.name+" to sync", joined.registration.Synced())
	}
	r.agree("P07", first, second)
}

func emptySyncs(r *rig) {
	r.start()
	late := r.follow("late handler", nil, tidings.HandlerOptions{})
	r.awaitClosed("the late handler to sync", late.registration.Synced())
	if n := len(r.informer.List()); n != 0 {
		r.Errorf("P07: the cache of an empty collection has %d objects", n)
	}
}

// blockedHandler blocks one handler: the others, the cache and writes go on.
func blockedHandler(r *rig) {
	r.create("hot")
	blocked := r.newHold()
	slow := r.follow("blocked handler", blocked.act, tidings.HandlerOptions{Limit: 10})
	r.start()
	r.awaitEntered(blocked)
	for i := range 50 {
		r.update("hot")
		if i%10 == 0 {
			r.create("brief")
			r.agree("P10")
			r.remove("brief")
			r.agree("P10")
		}
	}
	r.create("brief")
	r.agree("P10")
	late := r.follow("late handler", nil, tidings.HandlerOptions{})
	r.agree("P10", late)
	close(blocked.proceed)
	r.agree("P10", slow)
	var kept []string
	for _, e := range slow.takeOf(r.key("brief")) {
		kept = append(kept, e.Type.String())
	}
	if want := strings.Repeat("Added Deleted ", 5) + "Added"; strings.Join(kept, " ") != want {
		r.Errorf("P10: of an object that came and went the blocked handler received %v, want %s",
			kept, want)
	}
}

// resyncRepeats waits until handlers with a period have received everything again.
func resyncRepeats(r *rig) {
	r.create("a")
	r.create("b")
	with := r.follow("with a period", nil, tidings.HandlerOptions{Resync: resyncPeriod})
	r.start()
	late := r.follow("late, with a period", nil, tidings.HandlerOptions{Resync: resyncPeriod})
	r.agree("P12", with, late)
	r.witness.Take()
	lists := 0
	if r.gate != nil {
		lists = r.gate.lists()
	}
	for _, f := range []*follower{with, late} {
		repeats := map[string]int{}
		r.await("P12", func() string {
			for _, e := range f.Take() {
				if e.Type == tidings.Added {
					continue
				}
				if e.Type != tidings.Updated || !e.Resync || !e.Same {
					r.Errorf("P12: received %v, want the same object twice", e)
				}
				repeats[e.Key]++
			}
			if repeats[r.key("a")] < 2 || repeats[r.key("b")] < 2 {
				return fmt.Sprintf("the handler %s has received again %v", f.name, repeats)
			}
			return ""
		})
	}
	if events := r.witness.Take(); len(events) != 0 {
		r.Errorf("P12: the handler without a period has received %v", events)
	}
	if r.gate != nil && r.gate.lists() != lists {
		r.Errorf("P12: a resync has listed")
	}
}

// reentrantHandler runs a handler that reads, adds and removes handlers, and writes.
func reentrantHandler(r *rig) {
	const echo = "echo-of-"
	r.create("a")
	var mu sync.Mutex // guards the rest
	var added, removed []*follower
	act := func(e follow.Event) {
		r.informer.List()
		r.get(e.Key)
		r.indexed(number(e.New))
		r.informer.Health()
		namespace, name, _ := strings.Cut(e.Key, "/")
		if strings.Contains(name, echo) || strings.HasPrefix(name, "fence-") {
			return
		}
		staying, err := r.tryFollow("added by a handler", nil, tidings.HandlerOptions{})
		r.check(err)
		leaving, err := r.tryFollow("added and removed", nil, tidings.HandlerOptions{})
		r.check(err)
		if staying == nil || leaving == nil {
			return
		}
		leaving.registration.Remove()
		mu.Lock()
		added, removed = append(added, staying), append(removed, leaving)
		mu.Unlock()
		if e.Type == tidings.Added {
			r.check(r.tryCreate(source.Key(namespace, echo+name), nil))
		}
	}
	f := r.follow("re-entrant handler", act, tidings.HandlerOptions{})
	r.start()
	r.create("b")
	r.update("a")
	r.remove("b")
	r.fence(f)
	r.await("P04", func() string {
		for _, name := range []string{"a", "b"} {
			namespace, _, _ := strings.Cut(r.key(name), "/")
			if key := source.Key(namespace, echo+name); f.Held()[key] == "" {
				return "the handler has not received " + key + ", which it made"
			}
		}
		return ""
	})
	mu.Lock()
	defer mu.Unlock()
	if len(added) != 4 {
		r.Errorf("P04: the handler has added %d others, want 4", len(added))
	}
	for _, leaving := range removed {
		r.awaitClosed("a removed handler to end", leaving.registration.Done())
		leaving.End()
	}
	r.agree("P04", append(added, f)...)
}
