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
	if c, ok := r.(managed); ok {
		s.add(c.lead(s, number))
		return r, number, nil
	}
	m := &runnerMember{r, newShare(s, number)}
	s.add(m)
	return m, number, nil
}

// runnerMember is a Runner of another kind than a Controller, which a group leads as a whole. It runs while its
// entry is served and not shut: what it does in a run is not known, so that the run counts as a call.
type runnerMember struct {
	Runner
	*share
}

// RunTerm runs the Runner whenever the group gives it to this process, until ctx ends and the group was left.
func (m *runnerMember) RunTerm(ctx context.Context, _ Term) error {
	return m.run(ctx, func(lasting context.Context) (err error) {
		for err == nil && lasting.Err() == nil {
			changed := m.changed.wait()
			_, term := m.group.snapshot()
			c := &entries.Call{Entry: m.Whole, Began: time.Now()}
			c.Context, c.Abort = context.WithCancelCause(lasting)
			if begun, _ := m.Begin("", c); !begun || term.Err() != nil {
				m.End(c)
				select {
				case <-changed:
				case <-lasting.Done():
				}
				continue
			}
			m.Note(c.Entry, nil)
			if err = m.Runner.RunTerm(c.Context, term); errors.Is(err, ErrCallsRunning) {
				break // the call has not ended, so that nobody else runs it
			}
			switch {
			case c.Context.Err() != nil || term.Err() != nil:
				err = nil // it ended with its entry, or with the term
			case err == nil:
				pause(lasting) // it ended by itself
			}
			m.End(c)
		}
		return err
	})
}

func (m *runnerMember) setDefaultTerm(Term) {}

func (m *runnerMember) prolong() {}

func (m *runnerMember) warm(context.Context, Term) error { return nil }

func (m *runnerMember) forget(slot.Set) {}

func (m *runnerMember) serve(owned []slot.Owned) { m.settle(m.Serve(owned)) }

// settle runs or stops the Runner, which waits for no versions.
func (m *runnerMember) settle([]string) {
	for _, w := range m.Expect() {
		m.Know(w)
		m.Reach(w, w.Entries)
	}
	if _, opened, shut := m.Sets(); opened.Minus(shut).IsEmpty() {
		m.Abort(m.All(), nil)
	}
	m.changed.send()
}

func (m *runnerMember) shown(int, bool) (versions map[string]string, ok bool) { return nil, true }

func (m *runnerMember) work(w *work) {
	runs, isOver, _ := m.state()
	w.runs(m.Name(), runs, isOver)
	if calls, _ := m.Calls(m.Whole); calls.Running == 0 {
		w.because(m.All(), "controller %q does not run", m.Name())
	}
}
