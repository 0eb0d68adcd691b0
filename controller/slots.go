package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// The keys by which the objects of controllers are divided.
const (
	// ByNamespace puts all objects of a namespace into one slot, so that an object is with those that
	// it owns.
	ByNamespace = slot.Namespace
	// ByUID divides objects evenly, also those without a namespace. An object that is created again
	// has another slot: the call for the end of one and those for the next may be made by two
	// processes at a time.
	ByUID = slot.UID
)

// Slots divides the objects of controllers among several processes. It is the shard.Handler of its
// process, for all controllers that have it as Options.Slots:
//
//	slots := controller.NewSlots(controller.ByNamespace)
//	c, err := controller.New(pods, controller.Options[*corev1.Pod]{…, Slots: slots}, reconcile)
//	group, err := shard.Join(ctx, config, slots, shard.Options{…})
//	err = c.Run(ctx)
//
// Controllers without Options.Slots, of a manager with this value as ManagerOptions.Slots, are led
// as a whole by one process each. Slots and these controllers are the entries that the group shares
// out.
//
// Held is for the program, and all other methods are for the group. Make the controllers and the
// manager before Join: entries are given to this process once they all run.
//
// Informers hold the objects of all slots, unless their Selection has Slots.Held.
type Slots struct {
	by   slot.Key
	held *tidings.Slots

	stay stay

	mu      sync.Mutex // guards the rest; none of the controllers' is taken under it
	members []member
	names   []string           // of the controllers that are led as a whole, by number
	manager *Manager           // the manager whose controllers are led as a whole; nil without one
	owned   map[int]slot.Owned // the entries that are served, for controllers that come later
	shut    slot.Set           // of these, the shut ones
	warming [slot.Entries]int  // the number of calls of Warm for each entry

	pulse pulse
}

// member is a controller with Options.Slots, or one that is led as a whole, as its group sees it.
type member interface {
	Name() string
	entries() *entries.States
	setDefaultTerm(t Term)
	prolong()                               // its informers
	warm(ctx context.Context, t Term) error // until it can serve
	serve(owned []slot.Owned)
	settle(parked []string)  // after a change of its entries, which has released parked keys
	forget(entries slot.Set) // and their keys
	// shown returns the versions at which its caches show all writes to an entry. ok is false before.
	shown(entry int, shut bool) (versions map[string]string, ok bool)
	report(w *work)
}

// NewSlots returns a Slots that divides objects by a key, [ByNamespace] or [ByUID]. No slot is
// served before a group gives one to it.
func NewSlots(by slot.Key) *Slots {
	s := &Slots{by: by, held: tidings.NewSlots(by, slot.Set{}), owned: map[int]slot.Owned{}}
	s.stay.init()
	s.pulse.idle = map[string]time.Time{}
	return s
}

// Held returns the slots that this process serves or is to serve, for the Selection of informers
// that need only the objects of these slots:
//
//	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{Slots: slots.Held()})
//
// By namespace, these may be the informer of the controller and all others whose objects are in the
// same namespace as the primaries that they lead to. By UID, only the informer of the controller
// may have it: the objects that a primary owns have other UIDs.
func (s *Slots) Held() *tidings.Slots { return s.held }

// check returns an error if objects cannot be divided by the key.
func (s *Slots) check(primary inspect.Informer, hasGuard bool) error {
	switch {
	case s.by != ByNamespace && s.by != ByUID:
		return errors.New("Options.Slots has no key: make it with NewSlots(ByNamespace) " +
			"or NewSlots(ByUID)")
	case !hasGuard:
		return errors.New("Options.Slots needs Options.Guard, which keeps back what is written for a " +
			"slot that another process has taken: make one with NewGuard")
	}
	if held := primary.Slots(); held != nil && held != s.held {
		return fmt.Errorf("informer %s has other Selection.Slots than the controller: "+
			"give it Options.Slots.Held()", primary.Name())
	}
	return s.checkScope(primary.Name(), primary.Resource())
}

// checkSecondary returns an error if this process may lack objects of a secondary that a key needs,
// as they may be with another process. s may be nil.
func (s *Slots) checkSecondary(f inspect.Informer) error {
	held := f.Slots()
	switch {
	case held == nil:
		return nil
	case s == nil || held != s.held:
		return fmt.Errorf("informer %s has Selection.Slots, and not those of Options.Slots.Held(): "+
			"it lacks objects that calls need", f.Name())
	case s.by == ByUID:
		return fmt.Errorf("informer %s is divided by UID, so that its objects are with other processes "+
			"than those that they belong to: leave Selection.Slots out, or divide by namespace", f.Name())
	}
	return nil
}

// checkScope returns an error if the objects of a resource are known to lack the key by which they
// are divided.
func (s *Slots) checkScope(informer string, r source.Resource) error {
	if s.by == ByNamespace && r.Scope == source.ScopeCluster {
		return fmt.Errorf("the objects of informer %s have no namespace, and Options.Slots divides "+
			"by it: use NewSlots(ByUID)", informer)
	}
	return nil
}

// add adds a controller, which serves what is served already.
func (s *Slots) add(c member) {
	s.mu.Lock()
	s.members = append(s.members, c)
	term, shut, owned := s.stay.current(), s.shut, slices.Collect(maps.Values(s.owned))
	s.mu.Unlock()
	c.prolong()
	if term != nil {
		c.setDefaultTerm(term)
		c.serve(c.entries().Owned(owned))
		c.entries().Shut(shut.And(c.entries().All()))
		c.settle(nil)
	}
}

// enlist makes a controller one that the group leads as a whole, under a number. It returns the
// runner to run.
func (s *Slots) enlist(r Runner) (runner Runner, number int, err error) {
	s.mu.Lock()
	s.names = append(s.names, r.Name())
	n := len(s.names)
	s.mu.Unlock()
	if n > slot.MaxControllers {
		return nil, 0, fmt.Errorf("%d controllers without Options.Slots are to run: "+
			"a group leads at most %d", n, slot.MaxControllers)
	}
	number = slot.Count + n - 1
	if c, ok := r.(managed); ok {
		s.add(c.asMember(s, number))
		return r, number, nil
	}
	m := &runnerMember{r, newShare(s, number)}
	s.add(m)
	return m, number, nil
}

// remove removes a controller that does not run.
func (s *Slots) remove(c member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(other member) bool { return other == c })
}

// all returns the controllers.
func (s *Slots) all() []member {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members)
}

// each calls f for all controllers that may serve one of some entries, with those.
func (s *Slots) each(entries slot.Set, f func(c member, entries slot.Set)) {
	for _, c := range s.all() {
		if some := entries.And(c.entries().All()); !some.IsEmpty() {
			f(c, some)
		}
	}
}

// Claim returns an error if a group has had these Slots already, or if no controller and no manager
// has them. From now on, the informers of the controllers follow the server until [Slots.Left] is
// called.
func (s *Slots) Claim() error {
	s.mu.Lock()
	switch {
	case s.stay.isClaimed():
		defer s.mu.Unlock()
		return errors.New("the controller.Slots belong to an earlier group: " +
			"make others with NewSlots for each Join")
	case len(s.members) == 0 && s.manager == nil:
		defer s.mu.Unlock()
		return errors.New("no controller and no manager has the controller.Slots as Options.Slots: " +
			"make them before Join")
	}
	s.stay.claim()
	members := slices.Clone(s.members)
	s.mu.Unlock()
	for _, c := range members {
		c.prolong()
	}
	return nil
}

// Begin begins a membership, in which nothing is served yet. Its calls and writes are made under
// the term.
func (s *Slots) Begin(t Term) {
	s.mu.Lock()
	s.owned, s.shut = map[int]slot.Owned{}, slot.Set{}
	m := s.manager
	s.mu.Unlock()
	for _, c := range s.all() { // before a run of the term, which serves what there is
		c.settle(c.entries().Drop(c.entries().All()))
	}
	s.stay.begin(t)
	for _, c := range s.all() {
		c.setDefaultTerm(t)
	}
	if m != nil {
		m.o.Guard.SetDefaultTerm(t)
	}
	s.stay.changed.send()
}

// Ends is closed when a Run with these Slots, of a controller or of a manager, fails or its context
// ends.
func (s *Slots) Ends() <-chan struct{} { return s.stay.ended }

// Left lets each Run with these Slots return, as the process has left the group, with an error or
// nil. A Run without an error of its own returns err.
func (s *Slots) Left(err error) { s.stay.leave(err) }

// Warm returns once all controllers follow their informers, which are synced and have the objects
// of the entries. A namespace that was added to an informer later, and cannot be read, holds up its
// own slot alone.
func (s *Slots) Warm(ctx context.Context, entries slot.Set) error {
	s.countWarms(entries, 1)
	defer s.countWarms(entries, -1)
	s.mu.Lock()
	m := s.manager
	s.mu.Unlock()
	if m != nil {
		if err := m.awaitMade(ctx); err != nil {
			return err
		}
	}
	if err := s.held.Add(ctx, entries.And(slot.All())); err != nil {
		return err
	}
	var err error
	term := s.stay.current()
	s.each(entries, func(c member, _ slot.Set) {
		if err != nil {
			return
		}
		if err = c.warm(ctx, term); err != nil {
			err = fmt.Errorf("controller %q: %w", c.Name(), err)
		}
	})
	return err
}

// countWarms adds to the number of calls of Warm for entries.
func (s *Slots) countWarms(entries slot.Set, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n := range entries.Slots() {
		s.warming[n] += more
	}
}

// Serve begins to call the keys of entries, each of them once, as soon as the caches that they need
// have reached the versions, or the server says that they cannot. Without versions, those that the
// server has are waited for, a second at most.
func (s *Slots) Serve(owned []slot.Owned) {
	s.mu.Lock()
	for _, o := range owned {
		s.owned[o.Number] = o
		s.shut.Remove(o.Number)
	}
	s.mu.Unlock()
	for _, c := range s.all() {
		c.serve(c.entries().Owned(owned))
	}
}

// Shut begins no more calls for entries. Calls that run go on. Keys that become due are called
// after Unshut.
func (s *Slots) Shut(entries slot.Set) {
	s.mu.Lock()
	s.shut = s.shut.Union(entries)
	s.mu.Unlock()
	s.each(entries, func(c member, some slot.Set) {
		c.entries().Shut(some)
		c.settle(nil)
	})
}

// Unshut begins calls for entries again, or goes on to wait for the versions.
func (s *Slots) Unshut(entries slot.Set) {
	s.mu.Lock()
	s.shut = s.shut.Minus(entries)
	s.mu.Unlock()
	s.each(entries, func(c member, some slot.Set) { c.settle(c.entries().Unshut(some)) })
}

// Calls describes the calls of an entry that was served. A write without an answer counts as one
// until the server has certainly ended it. If the entry is shut, the server is asked about writes
// that the caches do not show.
func (s *Slots) Calls(entry int) slot.Calls {
	all := slot.Calls{Known: true, Versions: map[string]string{}}
	s.each(slot.Of(entry), func(c member, _ slot.Set) {
		one, shut := c.entries().Calls(entry)
		versions, shown := c.shown(entry, shut)
		one.Known = one.Known && shown
		all.Opened, all.Known = all.Opened || one.Opened, all.Known && one.Known
		all.Running += one.Running
		if all.Oldest.IsZero() || !one.Oldest.IsZero() && one.Oldest.Before(all.Oldest) {
			all.Oldest = one.Oldest
		}
		for part, version := range versions {
			caches.Raise(all.Versions, part, version)
		}
	})
	if term := s.stay.current(); !all.Known || term == nil || term.Err() != nil {
		all.Known, all.Versions = false, nil
	}
	return all
}

// Abort ends the contexts of the calls of entries, with a cause.
func (s *Slots) Abort(entries slot.Set, cause error) {
	s.each(entries, func(c member, some slot.Set) { c.entries().Abort(some, cause) })
}

// Drop forgets the keys of entries. Their objects leave the informers with Held, and do not count
// as deleted.
func (s *Slots) Drop(entries slot.Set) {
	s.mu.Lock()
	for n := range entries.Slots() {
		delete(s.owned, n)
	}
	s.shut = s.shut.Minus(entries)
	s.mu.Unlock()
	s.each(entries, func(c member, some slot.Set) {
		parked := c.entries().Drop(some)
		c.forget(some) // first: a parked key whose call is due would be called, and then once more
		c.settle(parked)
	})
	s.held.Remove(entries.And(slot.All()))
}

// setManager sets the manager whose controllers are led as a whole.
func (s *Slots) setManager(m *Manager) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manager != nil {
		return errors.New("ManagerOptions.Slots belong to another manager: make one manager of both, " +
			"or a group for each")
	}
	s.manager = m
	return nil
}
