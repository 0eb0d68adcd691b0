package controller

import (
	"context"
	"errors"
	"sync"
)

// task is the [Runner] of a Descriptor.Task.
type task struct {
	Descriptor
	guard *Guard // of the manager, nil without one

	mu    sync.Mutex // guards the rest
	state State      // "" before the first run
	last  error      // of the last run
}

func (t *task) Name() string { return t.Descriptor.Name }

// RunTerm runs the function. It returns when ctx or the term has ended, or with an error of the
// function. What it writes with its context is bound to its term alone, or to none on every replica.
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
	work := ctx
	if t.guard != nil && (term != nil || t.EveryReplica) {
		work = t.guard.InTerm(ctx, term)
	}
	t.note(StateRunning, nil)
	err := t.Task(work)
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
	h := Health{Name: t.Name(), State: StateStopped, Ended: errorText(t.last)}
	if t.state != "" {
		h.State = t.state
	}
	return h
}
