package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/tidings-go/tidings/internal/slot"
)

// wholes are the numbers of controllers that are led as a whole, above those of the slots by which objects
// are divided. Each is a slot with all keys.
var wholes = func() (s slot.Set) {
	for n := slot.Count; n < slot.Entries; n++ {
		s.Add(n)
	}
	return s
}()

// lead makes the group lead a controller as a whole, under a number. It returns the runner to run.
func (s *Slots) lead(r Runner, number int) Runner {
	led, ok := r.(interface {
		slotted
		lead(group *Slots, number int)
	})
	if !ok {
		led = &foreign{Runner: r}
		r = led.(*foreign)
	}
	led.lead(s, number)
	s.add(led)
	return r
}

// foreign is a Runner of another kind than a Controller, which a group leads as a whole. It runs while its
// slot is served: what it does in a run is not known.
type foreign struct {
	Runner
	group   *Slots
	number  int
	changed broadcast

	mu      sync.Mutex // guards the rest
	serving bool
	running bool
	stop    context.CancelFunc // of the run
}

func (f *foreign) lead(group *Slots, number int) { f.group, f.number = group, number }

func (f *foreign) has() slot.Set { return slot.Of(f.number) }

// setDefaultTerm begins a membership, in which the slot is not served yet.
func (f *foreign) setDefaultTerm(Term) { f.set(false) }

func (f *foreign) warm(context.Context, Term) error { return nil }

func (f *foreign) takeMade(*[slot.Count]float64) {}

// RunTerm runs the Runner whenever the group gives it to this process, until ctx ends and it is taken.
func (f *foreign) RunTerm(ctx context.Context, _ Term) error {
	lasting, stop := f.group.lasting(ctx)
	defer stop()
	for {
		changed := f.changed.wait()
		_, term := f.group.snapshot()
		f.mu.Lock()
		begins := f.serving && term.Err() == nil
		running, cancel := context.WithCancel(lasting)
		f.running, f.stop = begins, cancel
		f.mu.Unlock()
		if begins {
			err := f.Runner.RunTerm(running, term)
			f.mu.Lock()
			f.running = false
			f.mu.Unlock()
			f.changed.send()
			if err != nil && term.Err() == nil {
				cancel()
				return err
			}
		}
		cancel()
		select {
		case <-changed:
		case <-lasting.Done():
			return nil
		}
	}
}

func (f *foreign) serve(owned []slot.Owned) { f.set(len(owned) > 0) }

// set sets whether the Runner is to run.
func (f *foreign) set(serving bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.serving == serving {
		return
	}
	if f.serving = serving; !serving && f.stop != nil {
		f.stop()
	}
	f.changed.send()
}

func (f *foreign) pause(slot.Set) (known bool) {
	f.set(false)
	return true
}

func (f *foreign) drain(ctx context.Context, _ Term, _ slot.Set) (map[string]string, error) {
	for {
		changed := f.changed.wait()
		if f.inOrder().IsEmpty() {
			return map[string]string{}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", ErrCallsRunning, context.Cause(ctx))
		}
	}
}

func (f *foreign) drop(slots slot.Set) {
	if slots.Has(f.number) {
		f.set(false)
	}
}

func (f *foreign) inOrder() slot.Set {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.running {
		return f.has()
	}
	return slot.Set{}
}

// singles returns the controllers that can be led as a whole, by name, and whether each of them is led here
// and in order.
func (m *Manager) singles() map[string]bool {
	if m.o.Slots == nil {
		return nil
	}
	inOrder, names := m.o.Slots.inOrder(), map[string]bool{}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.runner != nil && u.number > 0 && !m.ended {
			names[u.Name] = inOrder.Has(u.number)
		}
	}
	return names
}

// awaitMade waits until the controllers are made, whose names are not known before.
func (m *Manager) awaitMade(ctx context.Context) error {
	select {
	case <-m.made:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// numberOf returns the slot of a controller that is led as a whole.
func (s *Slots) numberOf(name string) (slot.Set, error) {
	m := s.leadingManager()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.Name == name && u.number > 0 {
			return slot.Of(u.number), nil
		}
	}
	return slot.Set{}, fmt.Errorf("the manager has no controller %q, and the map of the group gives it that", name)
}

// Controllers returns the controllers of the manager that can be led as a whole, by name, and whether each
// of them is led here and in order.
func (s *Slots) Controllers() map[string]bool {
	if m := s.leadingManager(); m != nil {
		return m.singles()
	}
	return nil
}

// Prepare is Warm for a controller that is led as a whole.
func (s *Slots) Prepare(ctx context.Context, name string) error {
	number, err := s.numberOf(name)
	if err != nil {
		return err
	}
	return s.Warm(ctx, number)
}

// Lead is Serve for a controller that is led as a whole.
func (s *Slots) Lead(name string, versions map[string]string) {
	if number, err := s.numberOf(name); err == nil {
		for n := range number.Slots() {
			s.Serve([]slot.Owned{{Number: n, Versions: versions}})
		}
	}
}

// Resign is Drain for a controller that is led as a whole, and then Drop.
func (s *Slots) Resign(ctx context.Context, name string) (map[string]string, error) {
	number, err := s.numberOf(name)
	if err != nil {
		return nil, err
	}
	versions, err := s.Drain(ctx, number)
	if err == nil {
		s.Drop(number)
	}
	return versions, err
}

// leadingManager returns the manager whose controllers are led as a whole, nil without one.
func (s *Slots) leadingManager() *Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manager
}

// setManager sets the manager whose controllers are led as a whole.
func (s *Slots) setManager(m *Manager) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.manager != nil {
		return errors.New("ManagerOptions.Slots belong to another manager: make one manager of both, or " +
			"a group for each")
	}
	s.manager = m
	return nil
}
