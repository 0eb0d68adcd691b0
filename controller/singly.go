package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// lead makes the group lead a controller as a whole, under a number. It returns the runner to run.
func (s *Slots) lead(r Runner) (runner Runner, number int, err error) {
	s.mu.Lock()
	s.names = append(s.names, r.Name())
	n := len(s.names)
	s.mu.Unlock()
	if n > slot.MaxControllers {
		return nil, 0, fmt.Errorf("%d controllers without Options.Slots are to run: a group leads at most %d",
			n, slot.MaxControllers)
	}
	number = slot.Count + n - 1
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
	return r, number, nil
}

// foreign is a Runner of another kind than a Controller, which a group leads as a whole. It runs while its
// entry is served and not shut: what it does in a run is not known, so that the run counts as a call.
type foreign struct {
	Runner
	t *share
}

func (f *foreign) lead(group *Slots, number int) { f.t = newShare(group, number) }

// RunTerm runs the Runner whenever the group gives it to this process, until ctx ends and the group was left.
func (f *foreign) RunTerm(ctx context.Context, _ Term) error {
	return f.t.run(ctx, func(lasting context.Context) (err error) {
		for err == nil && lasting.Err() == nil {
			changed := f.t.changed.wait()
			_, term := f.t.group.snapshot()
			c := &entries.Call{Entry: f.t.Whole, Began: time.Now()}
			c.Context, c.Abort = context.WithCancelCause(lasting)
			if begun, _ := f.t.Begin("", c); !begun || term.Err() != nil {
				f.t.End(c)
				select {
				case <-changed:
				case <-lasting.Done():
				}
				continue
			}
			f.t.Note(c.Entry, nil)
			if err = f.Runner.RunTerm(c.Context, term); errors.Is(err, ErrCallsRunning) {
				break // the call has not ended, so that nobody else runs it
			}
			switch {
			case c.Context.Err() != nil || term.Err() != nil:
				err = nil // it ended with its entry, or with the term
			case err == nil:
				pause(lasting) // it ended by itself
			}
			f.t.End(c)
		}
		return err
	})
}

func (f *foreign) share() *share { return f.t }

func (f *foreign) setDefaultTerm(Term) {}

func (f *foreign) prolong() {}

func (f *foreign) warm(context.Context, Term) error { return nil }

func (f *foreign) forget(slot.Set) {}

func (f *foreign) serve(owned []slot.Owned) { f.settle(f.t.Serve(owned)) }

// settle runs or stops the Runner, which waits for no versions.
func (f *foreign) settle([]string) {
	for _, w := range f.t.Expect() {
		f.t.Know(w)
		f.t.Reach(w, w.Entries)
	}
	if _, opened, shut := f.t.Sets(); opened.Minus(shut).IsEmpty() {
		f.t.Abort(f.t.All(), nil)
	}
	f.t.changed.send()
}

func (f *foreign) shown(int, bool) (versions map[string]string, ok bool) { return nil, true }

func (f *foreign) work(w *work) {
	runs, isOver, _ := f.t.state()
	w.runs(f.Name(), runs, isOver)
	if calls, _ := f.t.Calls(f.t.Whole); calls.Running == 0 {
		w.because(f.t.All(), "controller %q does not run", f.Name())
	}
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
