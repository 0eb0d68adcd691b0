package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/source"
)

// claim takes the right to follow an informer in this run.
func (r *run[T]) claim(f *caches.Informer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, claimed := r.registrations[f]; claimed || r.ending {
		return false
	}
	r.registrations[f] = nil
	return true
}

// isFollowed reports whether an informer has a handler of this run.
func (r *run[T]) isFollowed(f *caches.Informer) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.registrations[f] != nil
}

// join follows an informer: it waits until the informer is synced, adds the handler and waits
// until that has received every object. It also returns when the run ends, or the secondary is
// removed. If late is set, the informer may be started later.
func (r *run[T]) join(f *caches.Informer, late bool) error {
	ctx, cancel := context.WithCancel(r.ctx)
	defer cancel()
	defer context.AfterFunc(f.Removed, cancel)()
	err := r.awaitSync(ctx, f, late)
	if err == nil {
		err = r.subscribe(ctx, f)
	}
	if f.Removed.Err() != nil {
		return nil
	}
	return err
}

func (r *run[T]) awaitSync(ctx context.Context, f *caches.Informer, late bool) error {
	for {
		err := f.AwaitSync(ctx)
		if !late || !errors.Is(err, tidings.ErrNotStarted) {
			return err
		}
		if !pause(ctx) {
			return context.Cause(ctx)
		}
	}
}

// subscribe adds the handler of an informer.
func (r *run[T]) subscribe(ctx context.Context, f *caches.Informer) error {
	if _, err := r.resolve(ctx, f); err != nil {
		return err
	}
	primary, err := r.resolve(ctx, r.c.informers.Primary())
	if err != nil {
		return err
	}
	if s := r.c.o.Slots; s != nil {
		if err := s.checkScope(r.c.informers.Primary().Name(), primary); err != nil {
			return err
		}
	}
	registration, err := f.Subscribe()
	if err != nil {
		return err
	}
	r.mu.Lock()
	if r.ending || !slices.Contains(r.c.informers.All(), f) {
		registration.Remove()
	}
	r.registrations[f] = registration
	r.mu.Unlock()
	select {
	case <-registration.Synced():
		return nil
	case <-registration.Done():
		return fmt.Errorf("informer %s: %w", f.Name(), f.Over())
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// resolve returns an informer's resource. A server that does not answer is asked again.
func (r *run[T]) resolve(ctx context.Context, f *caches.Informer) (source.Resource, error) {
	logged := ""
	for {
		resource, err := f.Resolved(ctx)
		if err == nil || f.Over() != nil {
			return resource, err
		}
		if text := err.Error(); text != logged && ctx.Err() == nil {
			logged = text
			r.c.o.Logger.Warn("the server cannot be asked what an informer holds, and is asked again",
				"informer", f.Name(), "error", err)
		}
		if !pause(ctx) {
			return resource, context.Cause(ctx)
		}
	}
}

// pause waits for a second. It reports false if ctx ends before.
func pause(ctx context.Context) bool {
	select {
	case <-time.After(housekeeping):
		return true
	case <-ctx.Done():
		return false
	}
}

// followLate follows an informer that calls do not wait for, because it is optional, or was added
// while the controller ran.
func (r *run[T]) followLate(f *caches.Informer) {
	if !r.claim(f) {
		return
	}
	r.goes("joiner", func() {
		err := r.join(f, true)
		switch {
		case r.ctx.Err() != nil:
		case err != nil:
			r.c.o.Logger.Error("a secondary is not followed", "informer", f.Name(), "error", err)
		case f.Removed.Err() == nil && r.hasStarted():
			r.everything()
		}
	})
}

// hasStarted reports whether calls may have begun.
func (r *run[T]) hasStarted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.started
}

// unfollow removes the handler of an informer.
func (r *run[T]) unfollow(f *caches.Informer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if registration := r.registrations[f]; registration != nil {
		registration.Remove()
	}
	delete(r.registrations, f)
}
