package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
)

// single is the state, in a manager with ManagerOptions.Slots, of a controller that is led as a whole,
// on one process at a time. Manager.mu guards term and running.
type single struct {
	changed broadcast // of term and running
	term    *ledTerm  // the last term in which this process was to lead it; nil before the first one
	running bool
}

// ledTerm is the time in which this process leads a controller: a part of a membership.
type ledTerm struct {
	Term
	left     map[string]string // the versions that the last leader left; nil: not known
	resigned context.Context
	resign   context.CancelFunc
	// before is the last term of the same membership in which a run has begun; nil without one, and
	// once a run of this term has begun. Manager.mu guards it, and started.
	before  *ledTerm
	started bool

	mu      sync.Mutex        // guards reached
	reached map[string]string // at the end of the run; nil: not known
}

// HandOver returns the versions that the last leader has left.
func (t *ledTerm) HandOver() (map[string]string, bool) { return t.left, t.left != nil }

// Reached receives the versions that the run leaves. A run whose calls go on leaves none.
func (t *ledTerm) Reached(versions map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reached = versions
}

// AfterFunc calls f in a goroutine once the membership's term is closed. The terms of a group do so
// themselves, so that a write needs no goroutine.
func (t *ledTerm) AfterFunc(f func()) (stop func() bool) {
	if membership, ok := t.Term.(interface{ AfterFunc(func()) func() bool }); ok {
		return membership.AfterFunc(f)
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-t.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	unset := context.AfterFunc(ctx, f)
	return func() bool { defer cancel(); return unset() }
}

// outcome returns the versions that are left for the next leader. If no run has begun, these are those of
// the last leader, and of the term before, whose hand-over may have been taken back.
func (t *ledTerm) outcome() map[string]string {
	if t.started {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.reached
	}
	if t.before == nil || t.left == nil {
		return t.left
	}
	versions := maps.Clone(t.before.outcome())
	if versions != nil {
		for part, version := range t.left {
			raise(versions, part, version)
		}
	}
	return versions
}

// lasting returns a context that ends once the group has taken all that is led here, after ctx.
func (m *Manager) lasting(ctx context.Context) (context.Context, context.CancelFunc) {
	lasting, stop := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		bounded, cancel := context.WithTimeout(lasting, leaveGrace)
		defer cancel()
		m.awaitResigned(bounded)
		stop()
	})
	return lasting, stop
}

// runMember runs a controller with the group: for its slots, or when it is to be led.
func (m *Manager) runMember(ctx, lasting context.Context, u *unit) error {
	runner := m.runnerOf(ctx, u)
	if runner == nil {
		return nil
	}
	if hasSlots(runner) {
		return m.runUnit(ctx, u, nil)
	}
	return m.leadSingly(lasting, u)
}

// leadSingly runs a controller whenever the group assigns it to this process, until ctx ends.
func (m *Manager) leadSingly(ctx context.Context, u *unit) error {
	for {
		t := m.nextTerm(ctx, u)
		if t == nil {
			return nil
		}
		running, stop := context.WithCancel(ctx)
		ended := context.AfterFunc(t.resigned, stop)
		err := m.runUnit(running, u, t)
		ended()
		stop()
		if errors.Is(err, ErrCallsRunning) && t.Err() != nil {
			m.stragglers(err)
		}
		m.mu.Lock()
		u.single.running = false
		m.mu.Unlock()
		u.single.changed.send()
		if err != nil && (!errors.Is(err, ErrCallsRunning) || ctx.Err() != nil) {
			return err
		}
	}
}

// nextTerm waits until this process is to lead a controller. It returns nil if ctx ends first.
func (m *Manager) nextTerm(ctx context.Context, u *unit) *ledTerm {
	for {
		changed := u.single.changed.wait()
		m.mu.Lock()
		t := u.single.term
		begins := t != nil && !t.started && t.resigned.Err() == nil
		if begins {
			t.started, t.before, u.single.running = true, nil, true
		}
		m.mu.Unlock()
		if begins {
			return t
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// awaitResigned waits until no controller is led here.
func (m *Manager) awaitResigned(ctx context.Context) {
	for _, u := range m.units {
		if !m.awaitEnd(ctx, u) {
			return
		}
	}
}

// awaitEnd waits until a controller does not run. It returns false if ctx ends before.
func (m *Manager) awaitEnd(ctx context.Context, u *unit) bool {
	for {
		changed := u.single.changed.wait()
		m.mu.Lock()
		running := u.single.running
		m.mu.Unlock()
		if !running {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// singles returns the controllers that can be led singly, by name, and whether each of them is led here
// and in order.
func (m *Manager) singles() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	names := map[string]bool{}
	for _, u := range m.units {
		if u.runner == nil || hasSlots(u.runner) || m.ended {
			continue
		}
		stalls, ok := u.runner.(interface{ isInOrder() bool })
		names[u.Name] = u.single.running && (!ok || stalls.isInOrder())
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

// prepare waits until the caches of a controller are synced.
func (m *Manager) prepare(ctx context.Context, name string) error {
	u, runner := m.unitOf(name)
	if u == nil {
		return fmt.Errorf("the manager has no controller %q, and the map of the group gives it that", name)
	}
	if synced, ok := runner.(interface{ awaitSync(context.Context) error }); ok {
		return synced.awaitSync(ctx)
	}
	return nil
}

// unitOf returns the controller with a name, or nil.
func (m *Manager) unitOf(name string) (*unit, Runner) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.units {
		if u.Name == name {
			return u, u.runner
		}
	}
	return nil, nil
}

// begin lets a controller run under the term of a membership.
func (m *Manager) begin(name string, membership Term, left map[string]string) {
	t := &ledTerm{Term: membership, left: left}
	t.resigned, t.resign = context.WithCancel(context.Background())
	u, _ := m.unitOf(name)
	m.mu.Lock()
	before := u.single.term
	if before != nil && !before.started {
		before = before.before
	}
	if before != nil && before.Term == membership {
		t.before = before
	}
	u.single.term = t
	m.mu.Unlock()
	u.single.changed.send()
}

// resign ends the term that begin has begun.
func (m *Manager) resign(ctx context.Context, name string) (map[string]string, error) {
	u, runner := m.unitOf(name)
	m.mu.Lock()
	t := u.single.term
	m.mu.Unlock()
	t.resign()
	if !m.awaitEnd(ctx, u) {
		return nil, fmt.Errorf("controller %q: %w: %w", name, ErrCallsRunning, context.Cause(ctx))
	}
	if idle, ok := runner.(interface{ isIdle() error }); ok {
		if err := idle.isIdle(); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return t.outcome(), nil
}

// hasSlots reports whether a runner is a controller with Options.Slots.
func hasSlots(r Runner) bool {
	s, ok := r.(interface{ hasSlots() bool })
	return ok && s.hasSlots()
}

// Controllers returns the controllers of the manager that can be led singly, by name, and whether each
// of them is led here and in order.
func (s *Slots) Controllers() map[string]bool {
	if m := s.leadingManager(); m != nil {
		return m.singles()
	}
	return nil
}

// Prepare returns once the caches of a controller are synced.
func (s *Slots) Prepare(ctx context.Context, name string) error {
	return s.leadingManager().prepare(ctx, name)
}

// Lead begins to run a controller, whose calls begin when the caches have reached the versions.
func (s *Slots) Lead(name string, versions map[string]string) {
	_, term := s.snapshot()
	s.leadingManager().begin(name, term, versions)
}

// Resign ends the run of a controller. It returns when no call runs, with the versions that the next
// leader has to reach.
func (s *Slots) Resign(ctx context.Context, name string) (map[string]string, error) {
	return s.leadingManager().resign(ctx, name)
}

// leadingManager returns the manager whose controllers are led singly, nil without one.
func (s *Slots) leadingManager() *Manager {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.manager
}

// setManager sets the manager whose controllers are led singly.
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
