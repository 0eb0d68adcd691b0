package controller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/controller/internal/caches"
	"github.com/tidings-go/tidings/source"
)

// handlers are the handlers of a run, by informer.
type handlers struct {
	informers *caches.Set
	slots     *Slots // that divide the keys, nil without
	logger    *slog.Logger

	mu            sync.Mutex                                 // guards the rest
	registrations map[*caches.Informer]*tidings.Registration // nil until the handler is added
	ended         bool
}

// claim takes the right to follow an informer in this run.
func (h *handlers) claim(f *caches.Informer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, claimed := h.registrations[f]; claimed || h.ended {
		return false
	}
	h.registrations[f] = nil
	return true
}

// follow reports whether an informer has a handler.
func (h *handlers) follow(f *caches.Informer) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.registrations[f] != nil
}

// join follows an informer: it waits until the informer is synced, adds the handler and waits until
// the handler has received every object. It also returns when ctx ends, or the secondary is
// removed. If late is set, the informer may be started later.
func (h *handlers) join(ctx context.Context, f *caches.Informer, late bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.Removed, cancel)()
	err := f.AwaitSync(ctx)
	for late && errors.Is(err, tidings.ErrNotStarted) && pause(ctx) {
		err = f.AwaitSync(ctx)
	}
	if err == nil {
		err = h.add(ctx, f)
	}
	if f.Removed.Err() != nil {
		return nil
	}
	return err
}

// add adds the handler of an informer.
func (h *handlers) add(ctx context.Context, f *caches.Informer) error {
	if _, err := h.resolve(ctx, f); err != nil {
		return err
	}
	primary, err := h.resolve(ctx, h.informers.Primary())
	if err != nil {
		return err
	}
	if h.slots != nil {
		if err := h.slots.checkScope(h.informers.Primary().Name(), primary); err != nil {
			return err
		}
	}
	registration, err := f.Subscribe()
	if err != nil {
		return err
	}
	h.mu.Lock()
	if h.ended || !slices.Contains(h.informers.All(), f) {
		registration.Remove()
	} else {
		h.registrations[f] = registration
	}
	h.mu.Unlock()
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
func (h *handlers) resolve(ctx context.Context, f *caches.Informer) (source.Resource, error) {
	logged := ""
	for {
		resource, err := f.Resolved(ctx)
		if err == nil || f.Over() != nil {
			return resource, err
		}
		if text := err.Error(); text != logged && ctx.Err() == nil {
			logged = text
			h.logger.Warn("the server cannot be asked what an informer holds, and is asked again",
				"informer", f.Name(), "error", err)
		}
		if !pause(ctx) {
			return resource, context.Cause(ctx)
		}
	}
}

// remove removes the handler of an informer.
func (h *handlers) remove(f *caches.Informer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if registration := h.registrations[f]; registration != nil {
		registration.Remove()
	}
	delete(h.registrations, f)
}

// end removes all handlers, and lets none be added.
func (h *handlers) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	for _, registration := range h.registrations {
		if registration != nil {
			registration.Remove()
		}
	}
}

// report adds the changes that handlers are at for long.
func (h *handlers) report(w *work, controller string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f, registration := range h.registrations {
		if registration == nil {
			continue
		}
		at := registration.Health()
		if !at.RunningSince.IsZero() && w.now.Sub(at.RunningSince) >= blockedAfter {
			w.blocked("controller %q is at the change of %s of informer %q since %v",
				controller, at.Running, f.Name(), at.RunningSince)
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
