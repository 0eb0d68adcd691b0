package controller

import (
	"context"
	"sync"

	"github.com/tidings-go/tidings/controller/internal/entries"
	"github.com/tidings-go/tidings/internal/engine/slot"
)

// share is the part of a controller in a group: its entries, and its Run, which returns once the group
// was left.
type share struct {
	entries.States
	group   *Slots
	changed broadcast // a run has started, or Run has ended

	mu      sync.Mutex // guards the rest
	inRun   bool       // Run has not returned
	isOver  bool       // the last Run makes no more calls
	failure error      // of that Run
}

// newShare returns the share of a controller that is led as a whole under a number, or entries.Divided.
func newShare(group *Slots, whole int) *share {
	return &share{group: group, States: entries.States{Whole: whole, By: group.by}}
}

// restart makes the entries wait for their versions again, at the beginning and at the end of a run.
func (s *share) restart() {
	s.Restart()
	s.changed.send()
}

// run is Run: it calls f with a context that ends when the group was left, and returns after that. It returns
// ErrRunning during another call.
func (s *share) run(ctx context.Context, f func(lasting context.Context) error) error {
	s.mu.Lock()
	inRun := s.inRun
	if !inRun {
		s.inRun, s.isOver, s.failure = true, false, nil
	}
	s.mu.Unlock()
	if inRun {
		return ErrRunning
	}
	err := s.group.outlast(ctx, func(lasting context.Context) error {
		err := f(lasting)
		s.mu.Lock()
		s.isOver, s.failure = true, err
		s.mu.Unlock()
		s.changed.send()
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inRun = false
	return err
}

// state reports whether Run makes calls, and whether it has made its last, with its error.
func (s *share) state() (runs, isOver bool, failure error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inRun && !s.isOver, s.isOver, s.failure
}

// owned returns the entries that the controller may serve.
func (s *share) owned(all []slot.Owned) (owned []slot.Owned) {
	for _, o := range all {
		if s.All().Has(o.Number) {
			owned = append(owned, o)
		}
	}
	return owned
}

func (s *share) ofGroup() *share { return s }
