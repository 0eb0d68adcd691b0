package controller

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
	"github.com/tidings-go/tidings/controller/internal/barrier"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// phase is the state of an entry in a controller.
type phase uint8

const (
	left    phase = iota // it is not served
	waiting              // it is served, once the caches have reached the versions
	open                 // calls are made for its keys
)

// entry is the life of an entry in a controller. The entry is a slot, or the controller as a whole.
//
//	phase    serve     reach   restart   drop   changes of its keys
//	left     waiting   -       -         -      are ignored
//	waiting  waiting   open    waiting   left   are ignored: each key is called once it is open
//	open     waiting   -       waiting   left   lead to calls; while it is shut, the keys are parked
//
// In each phase but left, an entry can be shut: no call begins, and its life goes on otherwise. serve and
// unshut end that. restart is the beginning or the end of a run.
type entry struct {
	phase    phase
	shut     bool
	versions map[string]string   // that the last owner has left; nil if they are not known
	unknown  bool                // nor are those of the server
	wait     *opening            // that ends with reach; nil if no run waits yet
	called   bool                // a call was made since serve
	parked   map[string]struct{} // the keys that are parked because it is shut, or until their writes show

	// Calls and their writes outlive runs and owners.
	calls      map[*calling]struct{} // that run
	unanswered []unanswered
}

// opening is a wait for the versions that the last owners of entries have left.
type opening struct {
	entries  slot.Set
	versions map[string]string // nil: they are not known
}

// unanswered is a write without an answer, which the server may still apply until a time.
type unanswered struct{ sent, until time.Time }

// park adds a key that is to be woken once the entry is not shut any more.
func (e *entry) park(key string) {
	if e.parked == nil {
		e.parked = map[string]struct{}{}
	}
	e.parked[key] = struct{}{}
}

// entries are the lives of all entries in a controller, which outlive its runs.
type entries struct {
	group   *Slots
	whole   int       // the entry of all keys; barrier.NoSlot if Options.Slots divides them
	changed broadcast // a run has started, or Run has ended

	mu      sync.Mutex // guards the rest
	of      [slot.Entries]entry
	inRun   bool  // Run has not returned
	isOver  bool  // the last Run makes no more calls
	failure error // of that Run
}

// has returns the entries of the controller.
func (t *entries) has() slot.Set {
	if t.whole != barrier.NoSlot {
		return slot.Of(t.whole)
	}
	return slot.All()
}

// entryOf returns the entry of an object with a UID and a namespace.
func (t *entries) entryOf(uid types.UID, namespace string) int {
	if t.whole != barrier.NoSlot {
		return t.whole
	}
	return t.group.by.Of(string(uid), namespace)
}

// each calls f for some entries, under the lock.
func (t *entries) each(some slot.Set, f func(n int, e *entry)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range some.Slots() {
		f(n, &t.of[n])
	}
}

// unpark returns the keys that were parked, and forgets them.
func (e *entry) unpark() (parked []string) {
	parked, e.parked = slices.Collect(maps.Keys(e.parked)), nil
	return parked
}

// drop forgets entries. It returns the keys that were parked.
func (t *entries) drop(entries slot.Set) (parked []string) {
	t.each(entries, func(_ int, e *entry) {
		parked = append(parked, e.unpark()...)
		*e = entry{calls: e.calls, unanswered: e.unanswered}
	})
	return parked
}

// serve begins to serve entries. It returns the keys that were parked.
func (t *entries) serve(owned []slot.Owned) (parked []string) {
	for _, o := range owned {
		parked = append(parked, t.drop(slot.Of(o.Number))...)
		t.each(slot.Of(o.Number), func(_ int, e *entry) {
			e.phase, e.versions, e.unknown = waiting, o.Versions, o.Versions == nil
		})
	}
	return parked
}

// restart makes the entries wait for their versions again.
func (t *entries) restart() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.of {
		if e := &t.of[n]; e.phase == open || e.wait != nil {
			e.phase, e.wait, e.parked = waiting, nil, nil
		}
	}
	t.changed.send()
}

// expect returns the waits that a run has to begin: one for all entries with versions, and one for others.
func (t *entries) expect() (waits []*opening) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, unknown := &opening{versions: map[string]string{}}, &opening{}
	for n := range t.of {
		e := &t.of[n]
		if e.phase != waiting || e.wait != nil {
			continue
		}
		if e.wait = known; e.versions == nil {
			e.wait = unknown
		}
		e.wait.entries.Add(n)
		for part, version := range e.versions {
			caches.Raise(e.wait.versions, part, version)
		}
	}
	return slices.DeleteFunc([]*opening{known, unknown}, func(w *opening) bool { return w.entries.IsEmpty() })
}

// reach opens some entries of a wait, if they are still part of it. It returns those, and whether others
// are left.
func (t *entries) reach(w *opening, some slot.Set) (opened slot.Set, others bool) {
	t.each(w.entries, func(n int, e *entry) {
		switch {
		case e.wait != w:
		case some.Has(n):
			e.phase, e.wait = open, nil
			opened.Add(n)
		default:
			others = true
		}
	})
	return opened, others
}

// know records that the versions of the entries of a wait are known now.
func (t *entries) know(w *opening) {
	t.each(w.entries, func(_ int, e *entry) { e.unknown = e.unknown && e.wait != w })
}

// shut begins no more calls for entries.
func (t *entries) shut(entries slot.Set) {
	t.each(entries, func(_ int, e *entry) { e.shut = e.phase != left })
}

// unshut begins calls for entries again. It returns the keys that were parked.
func (t *entries) unshut(entries slot.Set) (parked []string) {
	t.each(entries, func(_ int, e *entry) {
		parked = append(parked, e.unpark()...)
		e.shut = false
	})
	return parked
}

// begin begins a call of a key, unless its entry is shut, which parks it, or not open.
func (t *entries) begin(key string, c *calling) (begun, parked bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &t.of[c.slot]
	switch {
	case e.phase != open:
		return false, false
	case e.shut:
		e.park(key)
		return false, true
	case e.calls == nil:
		e.calls = map[*calling]struct{}{}
	}
	e.calls[c] = struct{}{}
	return true, false
}

// note records that the function is called, or was called, with its writes that have no answer.
func (t *entries) note(n int, writes []guard.Write) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, now := &t.of[n], time.Now()
	e.called = true
	for _, w := range writes {
		if w.Unknown && w.NotBefore.After(now) {
			e.unanswered = append(e.unanswered, unanswered{w.Sent, w.NotBefore})
		}
	}
	e.prune(now)
}

// prune drops the writes that cannot be applied any more.
func (e *entry) prune(now time.Time) {
	e.unanswered = slices.DeleteFunc(e.unanswered, func(u unanswered) bool { return !u.until.After(now) })
}

// end ends a call.
func (t *entries) end(c *calling) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.of[c.slot].calls, c)
	c.abort(nil)
}

// abort ends the contexts of the calls of entries.
func (t *entries) abort(entries slot.Set, cause error) {
	t.each(entries, func(_ int, e *entry) {
		for c := range e.calls {
			c.abort(cause)
		}
	})
}

// calls describes the calls of an entry, and reports whether it is shut. Known says that no call runs, and
// that the versions of the last owner or of the server are known.
func (t *entries) calls(n int) (c slot.Calls, shut bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &t.of[n]
	e.prune(time.Now())
	since := func(at time.Time) {
		if c.Running++; c.Oldest.IsZero() || at.Before(c.Oldest) {
			c.Oldest = at
		}
	}
	for running := range e.calls {
		since(running.began)
	}
	c.Opened, c.Known = e.called, c.Running == 0 && !e.unknown
	for _, w := range e.unanswered {
		since(w.sent)
	}
	return c, e.shut
}

// park adds a key to those that are woken once an entry is not shut any more.
func (t *entries) park(n int, key string) {
	t.each(slot.Of(n), func(_ int, e *entry) { e.park(key) })
}

// isIn reports whether an entry is in a phase.
func (t *entries) isIn(n int, p phase) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[n].phase == p
}

// sets returns the entries that are served, those of them that are open, and those that are shut.
func (t *entries) sets() (served, opened, shut slot.Set) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.of {
		e := &t.of[n]
		if e.phase != left {
			served.Add(n)
		}
		if e.phase == open {
			opened.Add(n)
		}
		if e.shut {
			shut.Add(n)
		}
	}
	return served, opened, shut
}

// run is Run: it calls f with a context that ends when the group was left, and returns after that. It returns
// ErrRunning during another call.
func (t *entries) run(ctx context.Context, f func(lasting context.Context) error) error {
	t.mu.Lock()
	inRun := t.inRun
	if !inRun {
		t.inRun, t.isOver, t.failure = true, false, nil
	}
	t.mu.Unlock()
	if inRun {
		return ErrRunning
	}
	err := t.group.outlast(ctx, func(lasting context.Context) error {
		err := f(lasting)
		t.mu.Lock()
		t.isOver, t.failure = true, err
		t.mu.Unlock()
		t.changed.send()
		return err
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inRun = false
	return err
}

// state reports whether Run makes calls, and whether it has made its last, with its error.
func (t *entries) state() (runs, isOver bool, failure error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inRun && !t.isOver, t.isOver, t.failure
}
