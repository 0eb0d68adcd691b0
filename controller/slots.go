package controller

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/internal/inspect"
	"github.com/tidings-go/tidings/internal/slot"
	"github.com/tidings-go/tidings/source"
)

// The keys by which the objects of controllers are divided.
const (
	// ByNamespace puts all objects of a namespace into one slot, so that an object is with those
	// that it owns.
	ByNamespace = slot.Namespace
	// ByUID divides objects evenly, also those without a namespace. An object that is created
	// again has another slot: the call for the end of one and those for the next may be made by
	// two processes at a time.
	ByUID = slot.UID
)

const (
	// loadHalf is the time after which a call counts half for the load of its slot. A planner
	// watches loads for the same time.
	loadHalf = 2 * time.Minute
	// loadBase is added to the calls of each slot that is served, so that few calls do not move
	// slots.
	loadBase = 10
	// lateAfter is the longest wait of a key in a slot that is in order.
	lateAfter = time.Minute
	// leaveGrace is the longest time for which a controller goes on after the end of Run's
	// context, until the others of the group have taken its slots. A kubelet gives a pod as long.
	leaveGrace = 30 * time.Second
)

// Slots divides the objects of controllers among several processes. It is the shard.Handler of its
// process, for all controllers that have it as Options.Slots:
//
//	slots := controller.NewSlots(controller.ByNamespace)
//	c, err := controller.New(pods, controller.Options[*corev1.Pod]{…, Slots: slots}, reconcile)
//	group, err := shard.Join(ctx, config, slots, shard.Options{…})
//	err = c.Run(ctx)
//
// Controllers without Options.Slots, of a manager with this value as ManagerOptions.Slots, are led as
// a whole by one process each.
//
// Claim, Begin, Warm, Serve, Drain, Drop and Report are for the group, and so are Controllers, Prepare,
// Lead and Resign. Make the controllers and the manager before Join: a slot is taken once they all run.
//
// Informers hold the objects of all slots, unless their Selection has Slots.Held.
type Slots struct {
	by   slot.Key
	held *tidings.Slots

	changed broadcast // of term and owned

	mu      sync.Mutex // guards the rest; none of the controllers' is taken under it
	members []slotted
	claimed bool
	manager *Manager           // the manager whose controllers are led singly; nil without one
	term    Term               // the term of the last membership, nil before
	owned   map[int]slot.Owned // the slots that are served, until they are drained
	paused  slot.Set           // the owned slots that are being drained, or whose drain failed
	loads   [slot.Count]float64
	aged    time.Time // the time at which the loads were brought up to date
}

// slotted is a controller with Options.Slots, or one that is led as a whole.
type slotted interface {
	Name() string
	has() slot.Set // the slots that it may serve
	setDefaultTerm(t Term)
	warm(ctx context.Context, t Term) error
	serve(owned []slot.Owned)
	pause(slots slot.Set) (known bool)
	drain(ctx context.Context, t Term, slots slot.Set) (map[string]string, error)
	drop(slots slot.Set)
	takeMade(calls *[slot.Count]float64)
	inOrder() slot.Set
}

// NewSlots returns a Slots that divides objects by a key, [ByNamespace] or [ByUID]. No slot is
// served before a group gives one to it.
func NewSlots(by slot.Key) *Slots {
	return &Slots{by: by, held: tidings.NewSlots(by, slot.Set{}), owned: map[int]slot.Owned{}}
}

// Held returns the slots that this process serves or is to serve, for the Selection of informers that
// need only the objects of these slots:
//
//	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{Slots: slots.Held()})
//
// By namespace, these may be the informer of the controller and all others whose objects are in
// the same namespace as the primaries that they lead to. By UID, only the informer of the
// controller may have it: the objects that a primary owns have other UIDs.
func (s *Slots) Held() *tidings.Slots { return s.held }

// check returns an error if objects cannot be divided by the key.
func (s *Slots) check(primary inspect.Informer, hasGuard bool) error {
	switch {
	case s.by != ByNamespace && s.by != ByUID:
		return errors.New("Options.Slots has no key: make it with NewSlots(ByNamespace) or NewSlots(ByUID)")
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
		return fmt.Errorf("informer %s has Selection.Slots, and not those of Options.Slots.Held(): it lacks "+
			"objects that calls need", f.Name())
	case s.by == ByUID:
		return fmt.Errorf("informer %s is divided by UID, so that its objects are with other processes than "+
			"those that they belong to: leave Selection.Slots out, or divide by namespace", f.Name())
	}
	return nil
}

// checkScope returns an error if the objects of a resource are known to lack the key by which
// they are divided.
func (s *Slots) checkScope(informer string, r source.Resource) error {
	if s.by == ByNamespace && r.Scope == source.ScopeCluster {
		return fmt.Errorf("the objects of informer %s have no namespace, and Options.Slots divides "+
			"by it: use NewSlots(ByUID)", informer)
	}
	return nil
}

func (s *Slots) add(c slotted) {
	s.mu.Lock()
	s.members = append(s.members, c)
	term := s.term
	s.mu.Unlock()
	if term != nil {
		c.setDefaultTerm(term)
		c.serve(s.serving(c.has()))
	}
}

// remove removes a controller that does not run.
func (s *Slots) remove(c slotted) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members = slices.DeleteFunc(s.members, func(other slotted) bool { return other == c })
}

// snapshot returns the controllers and the term.
func (s *Slots) snapshot() ([]slotted, Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.members), s.term
}

// Claim returns an error if a group has had these Slots already, or if no controller and no manager has
// them.
func (s *Slots) Claim() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.claimed:
		return errors.New("the controller.Slots belong to an earlier group: make others with NewSlots for each Join")
	case len(s.members) == 0 && s.manager == nil:
		return errors.New("no controller and no manager has the controller.Slots as Options.Slots: make them " +
			"before Join")
	}
	s.claimed = true
	return nil
}

// Begin begins a membership. Its calls and writes are made under the term.
func (s *Slots) Begin(t Term) {
	s.mu.Lock()
	s.term = t
	s.mu.Unlock()
	members, _ := s.snapshot()
	for _, c := range members {
		c.setDefaultTerm(t)
	}
	if m := s.leadingManager(); m != nil {
		m.o.Guard.SetDefaultTerm(t)
	}
	s.changed.send()
}

// next waits for a membership after the last one. It returns nil if ctx ends first.
func (s *Slots) next(ctx context.Context, last Term) Term {
	for {
		changed := s.changed.wait()
		if _, term := s.snapshot(); term != nil && term != last && term.Err() == nil {
			return term
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// lasting returns a context that ends once the group has taken all slots, after ctx.
func (s *Slots) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	unset := context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(lasting, leaveGrace)
		defer cancel()
		s.awaitTaken(bounded)
		stop()
	})
	return lasting, func() {
		unset()
		stop()
	}
}

// awaitTaken waits until the group has taken all slots. Slots that are being drained are not taken yet:
// a controller has to follow its writes, and to ask the server about them.
func (s *Slots) awaitTaken(ctx context.Context) {
	for {
		changed := s.changed.wait()
		s.mu.Lock()
		left := len(s.owned)
		s.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Warm returns once all controllers follow their informers, which are synced and have the objects of
// the slots. A namespace that was added to an informer later, and cannot be read, holds up its own slot
// alone.
func (s *Slots) Warm(ctx context.Context, slots slot.Set) error {
	if m := s.leadingManager(); m != nil {
		if err := m.awaitMade(ctx); err != nil {
			return err
		}
	}
	if err := s.held.Add(ctx, slots.And(slot.All())); err != nil {
		return err
	}
	members, term := s.snapshot()
	for _, c := range members {
		if c.has().And(slots).IsEmpty() {
			continue
		}
		if err := c.warm(ctx, term); err != nil {
			return fmt.Errorf("controller %q: %w", c.Name(), err)
		}
	}
	return nil
}

// Serve begins to call the keys of slots, each of them once, as soon as the caches that they need have
// reached the versions, or the server says that they cannot. Without versions, those that the server has
// are waited for, a second at most.
func (s *Slots) Serve(owned []slot.Owned) {
	s.mu.Lock()
	for _, o := range owned {
		s.owned[o.Number] = o
		s.paused.Remove(o.Number)
	}
	s.mu.Unlock()
	members, _ := s.snapshot()
	for _, c := range members {
		has := c.has()
		c.serve(slices.DeleteFunc(slices.Clone(owned), func(o slot.Owned) bool { return !has.Has(o.Number) }))
	}
}

// serving returns those of some slots that are served, and not paused.
func (s *Slots) serving(some slot.Set) (owned []slot.Owned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, o := range s.owned {
		if some.Has(n) && !s.paused.Has(n) {
			owned = append(owned, o)
		}
	}
	return owned
}

// Drain begins no more calls for slots. It returns once no call for them runs and the caches show the
// writes of their calls. The result is the versions that the next owner has to reach: those at which
// the writes of this process showed, and those that this process waited for. Nil means that they are
// not known. After an error, Serve may be called again.
func (s *Slots) Drain(ctx context.Context, slots slot.Set) (map[string]string, error) {
	s.mu.Lock()
	s.paused = s.paused.Union(slots)
	s.mu.Unlock()
	members, term := s.snapshot()
	known := true
	members = slices.DeleteFunc(members, func(c slotted) bool { return c.has().And(slots).IsEmpty() })
	for _, c := range members {
		known = c.pause(slots.And(c.has())) && known
	}
	versions := map[string]string{}
	for _, c := range members {
		reached, err := c.drain(ctx, term, slots.And(c.has()))
		if err != nil {
			return nil, fmt.Errorf("controller %q: %w", c.Name(), err)
		}
		known = known && reached != nil
		for part, version := range reached {
			raise(versions, part, version)
		}
	}
	if !known {
		versions = nil
	}
	s.mu.Lock()
	for n := range slots.Slots() {
		delete(s.owned, n)
	}
	s.paused = s.paused.Minus(slots)
	s.mu.Unlock()
	s.changed.send()
	return versions, nil
}

// Drop forgets the keys of slots. Their objects leave the informers with Held, and do not count as
// deleted.
func (s *Slots) Drop(slots slot.Set) {
	s.mu.Lock()
	for n := range slots.And(slot.All()).Slots() {
		s.loads[n] = 0
	}
	s.mu.Unlock()
	members, _ := s.snapshot()
	for _, c := range members {
		c.drop(slots.And(c.has()))
	}
	s.held.Remove(slots.And(slot.All()))
}

// Report returns the slots that are in order in all controllers. A slot is in order if the informers
// are synced, have reached the versions, and have not failed to list and watch for longer than a
// minute. By namespace, the lists and watches of the namespaces in the slot alone are judged, where
// informers have several. Besides, no key of the slot has been ready or held back for longer than that,
// and no change has waited longer for the end of the running call of its key.
//
// The load of a slot is ten plus the number of its calls; the weight of a call halves every two
// minutes. Without the ten, a few calls of an idle group would move its slots to and fro. Calls
// measure the work that a move takes along: unlike their durations, they do not depend on the machine,
// and unlike the number of objects they show which namespaces are busy. A call counts if something
// else has led to it than the move of the slot or the echo of an own write: a move makes such calls,
// and must not lead to the next move.
func (s *Slots) Report() (inOrder slot.Set, loads [slot.Count]float64) {
	members, _ := s.snapshot()
	var made [slot.Count]float64
	for _, c := range members {
		c.takeMade(&made)
	}
	inOrder = s.inOrder().And(slot.All())
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	kept := math.Exp2(-now.Sub(s.aged).Seconds() / loadHalf.Seconds())
	s.aged = now
	for n := range s.loads {
		s.loads[n] = s.loads[n]*kept + made[n]
		if _, ok := s.owned[n]; ok {
			loads[n] = s.loads[n] + loadBase
		}
	}
	return inOrder, loads
}

// inOrder returns the slots that are served and in order in all controllers that may serve them.
func (s *Slots) inOrder() (inOrder slot.Set) {
	members, _ := s.snapshot()
	for _, o := range s.serving(slot.All().Union(wholes)) {
		inOrder.Add(o.Number)
	}
	for _, c := range members {
		inOrder = inOrder.Minus(c.has().Minus(c.inOrder()))
	}
	return inOrder
}
