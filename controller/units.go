package controller

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// managed is a [Controller] of any type, as managers and groups see it. A Runner of another kind
// has no more than its public methods.
type managed interface {
	stopsWithin() time.Duration // the longest that RunTerm takes to return once its context has ended
	hasSlots() bool             // it has Options.Slots
	leaveSlots()                // slots are served without it, as it is not to run
	// asMember makes it an entry of a group, with a number: the group leads it as a whole.
	asMember(group *Slots, number int) member
}

// makeUnit makes a controller, unless the server lacks a resource that it requires.
func (m *Manager) makeUnit(ctx context.Context, u *unit) error {
	missing := m.missing(ctx, u.Requires)
	var runner Runner
	if missing == "" {
		var err error
		if runner, err = u.New(); err != nil {
			return err
		}
		if isNil(runner) {
			return fmt.Errorf("Descriptor.New of %q has made no controller, and returned no error", u.Name)
		}
		if runner.Name() != u.Name {
			return fmt.Errorf("Descriptor.New of %q has made a controller of the name %q",
				u.Name, runner.Name())
		}
		if hasSlots(runner) && m.elector != nil {
			return fmt.Errorf("controller %q: %w", u.Name, errTerm)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if runner != nil && m.o.Slots != nil && !hasSlots(runner) && !u.EveryReplica {
		var err error
		if runner, u.number, err = m.o.Slots.enlist(runner); err != nil {
			return err
		}
	}
	if missing != "" && u.missing != missing {
		m.o.Logger.Warn("a controller is skipped until the server serves what it needs",
			"controller", u.Name, "missing", missing)
	}
	u.missing = missing
	if runner != nil {
		u.runner = runner
		close(u.appears)
		if c, ok := runner.(managed); ok && m.elector != nil && m.o.Election.Grace == 0 {
			m.grace = max(m.grace, c.stopsWithin(), leadGrace)
			m.elector.SetGrace(m.grace)
		}
	}
	return nil
}

// isNil reports whether a controller is nil, or a nil pointer.
func isNil(r Runner) bool {
	v := reflect.ValueOf(r)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// missing returns the first resource that the server does not serve, or the error of asking for it;
// "" if it serves all.
func (m *Manager) missing(ctx context.Context, all []schema.GroupVersionResource) string {
	for _, gvr := range all {
		if err := m.factory.Inspect().Served(ctx, gvr); err != nil {
			return err.Error()
		}
	}
	return ""
}

// runnerOf returns the runner of a unit once it is made, nil if ctx ends first.
func (m *Manager) runnerOf(ctx context.Context, u *unit) Runner {
	select {
	case <-ctx.Done():
		return nil
	case <-u.appears:
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return u.runner
}

// makeLater makes the controller of a unit that was skipped, and starts its informers, when the
// server serves what it requires.
func (m *Manager) makeLater(ctx context.Context, u *unit) error {
	ticker := time.NewTicker(requiresPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-u.appears:
			return nil
		default:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := m.makeUnit(ctx, u); err != nil {
			return err
		}
		if err := m.factory.Start(m.informers); err != nil {
			return err
		}
	}
}

// hasSlots reports whether a runner is a controller with Options.Slots.
func hasSlots(r Runner) bool {
	c, ok := r.(managed)
	return ok && c.hasSlots()
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
