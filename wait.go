package tidings

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// errFailingFast ends a wait of a factory that fails fast.
var errFailingFast = errors.New("FactoryOptions.FailFast is set, " +
	"and a type is missing or forbidden")

// waiter has the methods of a collection of any type that waitForSync needs.
type waiter interface {
	awaitSync(ctx context.Context, failFast bool) error
	Health() Health
	InSync() bool
	Over() error
}

// await waits until done returns true, or an error. The wait ends with the collection, and
// at once if only a factory can start it and has not.
func (c *collection[T]) await(ctx context.Context, done func() (bool, error)) error {
	return c.Await(ctx, func() (bool, error) {
		if c.o.owned && !c.Started() {
			return false, ErrNotStarted
		}
		return done()
	})
}

// awaitSync waits until the collection is in sync. With failFast it also returns when the
// server has said that the type is forbidden or missing.
func (c *collection[T]) awaitSync(ctx context.Context, failFast bool) error {
	refused := func(state State) bool {
		return state == StateForbidden || state == StateNoSuchResource && !c.o.selection.optional
	}
	return c.await(ctx, func() (bool, error) {
		switch {
		case c.InSync():
			return true, nil
		case failFast && c.InState(refused):
			return false, errFailingFast
		}
		return false, nil
	})
}

// waitForSync waits for all collections, each until its last handle is released. Its
// error names all that are not synced when the wait ends, not only the one that ended it.
func waitForSync(ctx context.Context, all []waiter, failFast bool) error {
	cause := awaitAll(ctx, all, failFast)
	for _, w := range all {
		if err := w.Over(); cause == nil && err != ErrReleased {
			cause = err // it has stopped while others were waited for
		}
	}
	if cause == nil {
		return nil
	}
	notSynced := &NotSyncedError{Cause: cause}
	for _, w := range all {
		if !w.InSync() && w.Over() != ErrReleased {
			notSynced.Informers = append(notSynced.Informers, w.Health())
		}
	}
	if len(notSynced.Informers) == 0 {
		return nil // the last of them was synced, or released, as the wait ended
	}
	return notSynced
}

// awaitAll waits for all collections at once, so that the first one that fails
// fast ends the wait for the others.
func awaitAll(ctx context.Context, all []waiter, failFast bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make(chan error, len(all))
	for _, w := range all {
		go func() { results <- w.awaitSync(ctx, failFast) }()
	}
	var first error
	for range all {
		if err := <-results; err != nil && err != ErrReleased && first == nil {
			first = err
			cancel(err)
		}
	}
	return first
}

// errNotListed is the cause of a NotSyncedError that no wait has led to.
var errNotListed = errors.New("the cache does not hold a complete list yet")

// Ready returns nil if every informer that was asked for holds a complete list, and has not
// stopped. Otherwise it returns a *NotSyncedError, which names the informers and the reasons. It
// does not wait, costs no request, and does not use its parameter: that makes it a healthz.Checker
// of controller-runtime, for AddReadyzCheck.
func (f *Factory) Ready(*http.Request) error {
	notSynced := &NotSyncedError{Cause: errNotListed}
	for _, w := range f.waiters() {
		over := w.Over()
		if w.InSync() || over == ErrReleased {
			continue
		}
		if over != nil {
			notSynced.Cause = over
		}
		notSynced.Informers = append(notSynced.Informers, w.Health())
	}
	if len(notSynced.Informers) == 0 {
		return nil
	}
	return notSynced
}

// ReadyHandler returns a handler for a readiness probe: it answers 200 and "ok" if the factory is
// Ready, and otherwise 503 and the error.
func (f *Factory) ReadyHandler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := f.Ready(r); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "ok")
	})
}
