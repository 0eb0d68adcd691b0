package engine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
	"github.com/tidings-go/tidings/internal/engine/tape"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// Subscription is a *fanout.Subscription[T] without its type parameter.
type Subscription interface {
	Name() string
	Remove()
	Done() <-chan struct{}
	Synced() <-chan struct{}
	HasSynced() bool
	Stats() fanout.Stats
}

// subscriptions are the handlers of a collection.
type subscriptions[T any] struct {
	*shared[T]
	recording *recording
	resyncs   resyncs[T]
	stopped   atomic.Bool // handlers are not called any more
}

// IsStopped reports whether the collection has stopped calling its handlers.
func (s *subscriptions[T]) IsStopped() bool { return s.stopped.Load() }

// Subscribe adds a handler. Its initial set is the cache, unless withoutInitial is set. It returns
// ErrStopped once the collection has stopped, and the errors of the options.
func (s *subscriptions[T]) Subscribe(
	deliver func(change.Change[T]), withoutInitial bool, o fanout.SubscriptionOptions,
) (*fanout.Subscription[T], error) {
	s.applyMu.Lock()
	defer s.applyMu.Unlock()
	var initial fanout.Items[T]
	if !withoutInitial {
		initial = s.store.Snapshot().Cursor().Next
	}
	o.OnPanic = s.recording.onPanic(o.OnPanic)
	subscription, err := s.log.Subscribe(deliver, initial, o)
	if errors.Is(err, fanout.ErrClosed) {
		return nil, ErrStopped
	}
	if err == nil && o.ResyncPeriod > 0 {
		s.resyncs.start(true)
	}
	return subscription, err
}

// Follow calls f for each change from now on, until remove is called. f must return soon.
func (s *subscriptions[T]) Follow(name string, f func(inspect.Change)) (remove func(), err error) {
	deliver := func(n change.Change[T]) {
		made := inspect.Change{Type: n.Type, Resync: n.Resync, Key: n.Key}
		if n.Type != change.Added {
			made.Old = n.Old
		}
		if n.Type != change.Deleted {
			made.New = n.New
		}
		f(made)
	}
	o := fanout.SubscriptionOptions{Name: name, IsolatePanics: true}
	subscription, err := s.Subscribe(deliver, true, o)
	if err != nil {
		return nil, err
	}
	return subscription.Remove, nil
}

// ReportPanic reports a handler's panic that the log does not see, because the façade recovers from
// it.
func (s *subscriptions[T]) ReportPanic() { s.recording.event(tape.ReasonPanic) }

// stuckIn returns a function that reports whether a handler of a closed log runs.
func stuckIn[T any](log *fanout.Log[T]) func() bool {
	return func() bool { return len(log.Subscriptions()) > 0 }
}

// stopHandlers drops the pending notifications and waits for the running calls.
func (s *subscriptions[T]) stopHandlers() error {
	s.applyMu.Lock()
	s.stopped.Store(true)
	s.log.Close()
	s.applyMu.Unlock()
	s.progress.wake()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), s.o.StopGrace)
		err := s.log.Wait(ctx)
		cancel()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("%w within %v of the stop: %w", ErrHandlersStuck, s.o.StopGrace, err)
		if s.o.OnStuck == nil {
			return err
		}
		s.o.OnStuck(err)
	}
}
