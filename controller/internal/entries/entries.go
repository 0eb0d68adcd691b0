package entries

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/controller/guard"
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

// entry is the state of an entry in a controller. The entry is a slot, or the controller as a
// whole.
//
//	phase    Serve     Reach   Restart   Drop   changes of its keys
//	left     waiting   -       -         -      are ignored
//	waiting  waiting   open    waiting   left   are ignored: each key is called once it is open
//	open     waiting   -       waiting   left   lead to calls; while it is shut, the keys are parked
//
// In each phase but left, an entry can be shut: no call begins, and the rest goes on. Serve and
// Unshut end that. Restart is the beginning or the end of a run.
type entry struct {
	phase    phase
	shut     bool
	versions map[string]string   // that the last owner has left; nil: not known
	unknown  bool                // nor are the server's versions
	wait     *Wait               // that ends with Reach; nil if no run waits yet
	called   bool                // a call was made since Serve
	parked   map[string]struct{} // the keys parked because it is shut, or until their writes show

	// Calls and their writes outlive runs and owners.
	running    map[*Call]struct{} // the calls that run
	unanswered []unanswered
}

// Call is a call that runs in an entry.
type Call struct {
	Entry   int
	Began   time.Time
	Context context.Context
	Abort   context.CancelCauseFunc // ends Context
}

// Wait is a wait for the versions that the last owners of entries have left.
type Wait struct {
	Entries  slot.Set
	Versions map[string]string // nil: they are not known
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

// States has the states of all entries in a controller, which outlive its runs.
type States struct {
	Whole int      // the entry of all keys, or Divided
	By    slot.Key // of the slots, if Whole is Divided

	mu sync.Mutex // guards of
	of [slot.Entries]entry
}

// Divided is in place of the entry of all keys if the keys are divided into slots.
const Divided = -1

// IsDivided reports whether the keys are divided into slots.
func (s *States) IsDivided() bool { return s.Whole == Divided }

// All returns the entries of the controller.
func (s *States) All() slot.Set {
	if s.IsDivided() {
		return slot.All()
	}
	return slot.Of(s.Whole)
}

// Owned returns those of some entries that the controller may serve.
func (s *States) Owned(all []slot.Owned) (owned []slot.Owned) {
	for _, o := range all {
		if s.All().Has(o.Number) {
			owned = append(owned, o)
		}
	}
	return owned
}

// Of returns the entry of an object with a UID and a namespace.
func (s *States) Of(uid types.UID, namespace string) int {
	if s.IsDivided() {
		return s.By.Of(string(uid), namespace)
	}
	return s.Whole
}

// OfNamespace returns the entries that may have keys of a namespace, "" being all.
func (s *States) OfNamespace(namespace string) (entries slot.Set) {
	if namespace == "" || !s.IsDivided() || s.By == slot.UID {
		return s.All()
	}
	return slot.Of(s.By.Of("", namespace))
}

// each calls f for some entries, under the lock.
func (s *States) each(some slot.Set, f func(n int, e *entry)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range some.Slots() {
		f(n, &s.of[n])
	}
}

// unpark returns the keys that were parked, and forgets them.
func (e *entry) unpark() (parked []string) {
	parked, e.parked = slices.Collect(maps.Keys(e.parked)), nil
	return parked
}

// Drop forgets entries. It returns the keys that were parked.
func (s *States) Drop(some slot.Set) (parked []string) {
	s.each(some, func(_ int, e *entry) {
		parked = append(parked, e.unpark()...)
		*e = entry{running: e.running, unanswered: e.unanswered}
	})
	return parked
}

// Serve begins to serve entries. It returns the keys that were parked.
func (s *States) Serve(owned []slot.Owned) (parked []string) {
	for _, o := range owned {
		parked = append(parked, s.Drop(slot.Of(o.Number))...)
		s.each(slot.Of(o.Number), func(_ int, e *entry) {
			e.phase, e.versions, e.unknown = waiting, o.Versions, o.Versions == nil
		})
	}
	return parked
}

// Restart makes the entries wait for their versions again.
func (s *States) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.of {
		if e := &s.of[n]; e.phase == open || e.wait != nil {
			e.phase, e.wait, e.parked = waiting, nil, nil
		}
	}
}

// Expect returns the waits that a run has to begin: one for all entries with versions, and one for
// others.
func (s *States) Expect() (waits []*Wait) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known, unknown := &Wait{Versions: map[string]string{}}, &Wait{}
	for n := range s.of {
		e := &s.of[n]
		if e.phase != waiting || e.wait != nil {
			continue
		}
		if e.wait = known; e.versions == nil {
			e.wait = unknown
		}
		e.wait.Entries.Add(n)
		for part, version := range e.versions {
			caches.Raise(e.wait.Versions, part, version)
		}
	}
	return slices.DeleteFunc([]*Wait{known, unknown}, func(w *Wait) bool {
		return w.Entries.IsEmpty()
	})
}

// Reach opens some entries of a wait, if they are still part of it. It returns those, and whether
// others are left.
func (s *States) Reach(w *Wait, some slot.Set) (opened slot.Set, others bool) {
	s.each(w.Entries, func(n int, e *entry) {
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

// Know records that the versions of the entries of a wait are known now.
func (s *States) Know(w *Wait) {
	s.each(w.Entries, func(_ int, e *entry) { e.unknown = e.unknown && e.wait != w })
}

// Shut begins no more calls for entries.
func (s *States) Shut(some slot.Set) {
	s.each(some, func(_ int, e *entry) { e.shut = e.phase != left })
}

// Unshut begins calls for entries again. It returns the keys that were parked.
func (s *States) Unshut(some slot.Set) (parked []string) {
	s.each(some, func(_ int, e *entry) {
		parked = append(parked, e.unpark()...)
		e.shut = false
	})
	return parked
}

// Begin begins a call of a key, unless its entry is shut, which parks it, or not open.
func (s *States) Begin(key string, c *Call) (begun, parked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.of[c.Entry]
	switch {
	case e.phase != open:
		return false, false
	case e.shut:
		e.park(key)
		return false, true
	case e.running == nil:
		e.running = map[*Call]struct{}{}
	}
	e.running[c] = struct{}{}
	return true, false
}

// Note records that the function is called, or was called, with its writes that have no answer.
func (s *States) Note(n int, writes []guard.Write) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, now := &s.of[n], time.Now()
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
	e.unanswered = slices.DeleteFunc(e.unanswered, func(u unanswered) bool {
		return !u.until.After(now)
	})
}

// End ends a call.
func (s *States) End(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of[c.Entry].running, c)
	c.Abort(nil)
}

// Abort ends the contexts of the calls of entries.
func (s *States) Abort(some slot.Set, cause error) {
	s.each(some, func(_ int, e *entry) {
		for c := range e.running {
			c.Abort(cause)
		}
	})
}

// Calls describes the calls of an entry, and reports whether it is shut. Known says that no call
// runs, and that the versions of the last owner or of the server are known.
func (s *States) Calls(n int) (c slot.Calls, shut bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.of[n]
	e.prune(time.Now())
	since := func(at time.Time) {
		if c.Running++; c.Oldest.IsZero() || at.Before(c.Oldest) {
			c.Oldest = at
		}
	}
	for call := range e.running {
		since(call.Began)
	}
	c.Opened, c.Known = e.called, c.Running == 0 && !e.unknown
	for _, w := range e.unanswered {
		since(w.sent)
	}
	return c, e.shut
}

// Park adds a key to those that are woken once an entry is not shut any more.
func (s *States) Park(n int, key string) {
	s.each(slot.Of(n), func(_ int, e *entry) { e.park(key) })
}

// IsOpen reports whether calls are made for the keys of an entry.
func (s *States) IsOpen(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of[n].phase == open
}

// Sets returns the entries that are served, the open ones among them, and the shut ones.
func (s *States) Sets() (served, opened, shut slot.Set) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range s.of {
		e := &s.of[n]
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
