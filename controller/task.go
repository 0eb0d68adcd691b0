package controller

import (
	"context"
	"errors"
	"sync"
)

// task is the [Runner] of a Descriptor.Task.
type task struct {
	name string
	run  func(ctx context.Context) error

	mu    sync.Mutex // guards the rest
	state State      // "" before the first run
	last  error      // of the last run
}

func (t *task) Name() string { return t.name }

// RunTerm runs the function. It returns when ctx or the term has ended, or with an error of the
// function.
func (t *task) RunTerm(ctx context.Context, term Term) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if term != nil {
		go func() {
			select {
			case <-term.Done():
				cancel(term.Err())
			case <-ctx.Done():
			}
		}()
	}
	t.note(StateRunning, nil)
	err := t.run(ctx)
	if err == nil && ctx.Err() == nil {
		t.note(StateDone, nil)
		<-ctx.Done()
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = nil
	}
	t.note(StateStopped, err)
	return err
}

func (t *task) note(s State, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state, t.last = s, err
}

// Health describes the task as a controller without calls.
func (t *task) Health() Health {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := Health{Name: t.name, State: StateStopped, Ended: errorText(t.last)}
	if t.state != "" {
		h.State = t.state
	}
	return h
}
