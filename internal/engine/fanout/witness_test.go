package fanout

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tidings-go/tidings/internal/engine/change"
)

// object is published by the tests: a state of an incarnation. States are told
// apart by their address.
type object struct {
	uid   string
	state int
}

// started returns a log whose subscriptions run at once.
func started(o Options[*object]) *Log[*object] {
	l := New(o)
	l.Start()
	return l
}

func describe(o *object) (version, uid string) { return fmt.Sprint(o.state), o.uid }

func (o *object) String() string {
	if o == nil {
		return "-"
	}
	return fmt.Sprintf("%s/%d", o.uid, o.state)
}

func show(n change.Change[*object]) string {
	return fmt.Sprintf("%v %s %v→%v", n.Type, n.Key, n.Old, n.New)
}

// action is something that can happen to a key.
type action uint8

const (
	modify    action = iota // add, or update
	replaceIt               // add, or update to another incarnation
	remove                  // add, or delete
	bury                    // add, or delete with an unknown final state
	recreate                // add, or delete and add
	moveAway                // add, or a move and an add of the same incarnation
	revert                  // add, or update to the incarnation before
	actions
)

// cluster is the truth: the state after every change, and the changes.
type cluster struct {
	state   map[string]*object
	before  map[string]string // the UID of the incarnation before
	history []change.Change[*object]
	serial  int
	initial bool // adds are part of the first list
}

func newCluster() *cluster {
	return &cluster{state: make(map[string]*object), before: make(map[string]string), initial: true}
}

// do applies an action to a key and returns the changes to publish.
func (c *cluster) do(key string, a action) []change.Change[*object] {
	c.serial++
	old := c.state[key]
	next := &object{uid: "u" + strconv.Itoa(c.serial), state: c.serial}
	var batch []change.Change[*object]
	switch {
	case old == nil:
		batch = append(batch, change.Change[*object]{Type: change.Added, Initial: c.initial, Key: key, New: next})
		c.state[key] = next
	case a == modify || a == replaceIt || a == revert:
		if a == modify {
			next.uid = old.uid
		} else if before := c.before[key]; a == revert && before != "" {
			next.uid = before
		}
		batch = append(batch, change.Change[*object]{Type: change.Updated, Key: key, Old: old, New: next})
		c.state[key] = next
	case a == bury:
		batch = append(batch, change.Change[*object]{Type: change.Deleted, Tombstone: true, Key: key, Old: old, New: old})
		delete(c.state, key)
	case a == moveAway:
		next.uid = old.uid
		batch = append(batch,
			change.Change[*object]{Type: change.Deleted, Tombstone: true, Moved: true, Key: key, Old: old, New: old},
			change.Change[*object]{Type: change.Added, Key: key, New: next})
		c.state[key] = next
	default:
		last := &object{uid: old.uid, state: c.serial}
		batch = append(batch, change.Change[*object]{Type: change.Deleted, Key: key, Old: old, New: last})
		delete(c.state, key)
		if a == recreate {
			batch = append(batch, change.Change[*object]{Type: change.Added, Key: key, New: next})
			c.state[key] = next
		}
	}
	if old != nil && old.uid != next.uid {
		c.before[key] = old.uid
	}
	c.history = append(c.history, batch...)
	return batch
}

// snapshot returns the state now, ascending by key.
func (c *cluster) snapshot() []change.Change[*object] {
	var items []change.Change[*object]
	for _, key := range slices.Sorted(maps.Keys(c.state)) {
		items = append(items, change.Change[*object]{Type: change.Added, Initial: true, Key: key, New: c.state[key]})
	}
	return items
}

// items are the objects of a snapshot as a subscriber receives them.
func items(snapshot []change.Change[*object]) Items[*object] {
	next := 0
	return func() (string, *object, bool) {
		if next == len(snapshot) {
			return "", nil, false
		}
		n := snapshot[next]
		next++
		return n.Key, n.New, true
	}
}

// one returns the items of a snapshot of one object.
func one[T any](key string, obj T) Items[T] {
	ok := true
	return func() (string, T, bool) {
		defer func() { ok = false }()
		return key, obj, ok
	}
}

// witness is a handler that checks every notification against those before.
type witness struct {
	view map[string]*object
	seen []change.Change[*object]
	err  error // the first thing that was wrong
}

func newWitness() *witness { return &witness{view: make(map[string]*object)} }

func (w *witness) see(n change.Change[*object]) {
	if err := w.check(n); err != nil && w.err == nil {
		w.err = fmt.Errorf("call %d, %s: %w", len(w.seen), show(n), err)
	}
	w.seen = append(w.seen, n)
	if n.Type == change.Deleted {
		delete(w.view, n.Key)
	} else {
		w.view[n.Key] = n.New
	}
}

func (w *witness) check(n change.Change[*object]) error {
	last, present := w.view[n.Key]
	switch {
	case n.Type == change.Added && present:
		return fmt.Errorf("added, but seen before as %v", last)
	case n.Type == change.Added && n.Old != nil:
		return fmt.Errorf("added, but has an old state")
	case n.Type != change.Added && !present:
		return fmt.Errorf("not seen before")
	case n.Type == change.Updated && n.Old != last:
		return fmt.Errorf("old is not the state seen last, %v", last)
	case n.Type == change.Deleted && n.New != nil && n.New.uid != last.uid:
		return fmt.Errorf("the end of %v, seen before as %v", n.New, last)
	case n.Resync && n.Old != n.New:
		return fmt.Errorf("a resync that changes the object")
	case n.New == nil:
		return fmt.Errorf("without a new state")
	}
	return nil
}

// told returns the notifications after the first calls, without resyncs.
func (w *witness) told(after int) []change.Change[*object] {
	return slices.DeleteFunc(slices.Clone(w.seen[after:]), func(n change.Change[*object]) bool { return n.Resync })
}

// lives returns the notifications that begin or end an incarnation, in order, without the states
// between, of which a fold may leave some out.
func lives(notifications []change.Change[*object]) []string {
	var out []string
	for _, n := range notifications {
		switch {
		case n.Type == change.Added:
			out = append(out, fmt.Sprintf("%s begins as %v", n.Key, n.New))
		case n.Type == change.Deleted:
			out = append(out, fmt.Sprintf("%s ends as %v, tombstone %v", n.Key, n.New, n.Tombstone))
		case n.Old.uid != n.New.uid:
			out = append(out, fmt.Sprintf("%s begins as %v instead of %s", n.Key, n.New, n.Old.uid))
		}
	}
	return out
}

// lastUpdates returns, of each run of updates of one incarnation, the last state.
func lastUpdates(notifications []change.Change[*object]) map[string]int {
	last := make(map[string]int)
	for _, n := range notifications {
		if n.Type == change.Updated && n.Old.uid == n.New.uid {
			last[n.Key+" "+n.New.uid] = n.New.state
		}
	}
	return last
}

// compare returns the errors in the notifications of a handler of a history from
// which it was to hear by the policy.
func compare(policy Policy, told, history []change.Change[*object]) error {
	switch policy {
	case ConflateState:
		return nil
	case ConflateUpdates:
		if got, want := lives(told), lives(history); !slices.Equal(got, want) {
			return fmt.Errorf("lives:\n%q\nwant\n%q", got, want)
		}
		if got, want := lastUpdates(told), lastUpdates(history); !maps.Equal(got, want) {
			return fmt.Errorf("last updates: %v, want %v", got, want)
		}
		return nil
	}
	if !slices.Equal(told, history) {
		return fmt.Errorf("told %d notifications that differ from the %d published", len(told), len(history))
	}
	return nil
}
