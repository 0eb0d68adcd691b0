package tidings

import (
	"context"
	"errors"

	"github.com/tidings-go/tidings/reflector"
)

// errFailingFast ends a wait of a factory that fails fast.
var errFailingFast = errors.New("FactoryOptions.FailFast is set, and a type is missing or forbidden")

// waiter is what waitForSync needs of a collection of any type.
type waiter interface {
	awaitSync(ctx context.Context, failFast bool) error
	health() Health
	inSync() bool
	wasStarted() bool
	hasStopped() bool
}

func (c *collection[T]) wasStarted() bool { return c.ran.Load() }
func (c *collection[T]) hasStopped() bool { return c.stopped.Load() }

// awaitSync waits until the collection is in sync. With failFast it also returns
// when the server has said that the type is forbidden or missing.
func (c *collection[T]) awaitSync(ctx context.Context, failFast bool) error {
	return c.progress.await(ctx, func() (bool, error) {
		switch {
		case c.inSync():
			return true, nil
		case c.stopped.Load():
			return false, ErrStopped
		case failFast && c.refused():
			return false, errFailingFast
		}
		return false, nil
	})
}

// inSync reports whether the cache holds a complete list of every namespace, those
// included that were added after the first complete list.
func (c *collection[T]) inSync() bool { return c.hasSynced() && c.progress.complete() }

func (c *collection[T]) refused() bool {
	for _, p := range c.present() {
		if state := p.reflector.Health().State; state == reflector.Forbidden || state == reflector.NoSuchResource && !c.selection.optional {
			return true
		}
	}
	return false
}

// waitForSync waits for all collections. Its error names all that are not synced
// when the wait ends, not only the one that ended it.
func waitForSync(ctx context.Context, all []waiter, failFast bool) error {
	var cause error
	for _, w := range all {
		if !w.wasStarted() {
			cause = ErrNotStarted
		}
	}
	if cause == nil {
		cause = awaitAll(ctx, all, failFast)
	}
	if cause == nil {
		return nil
	}
	notSynced := &NotSyncedError{Cause: cause}
	for _, w := range all {
		if !w.inSync() {
			notSynced.Informers = append(notSynced.Informers, w.health())
		}
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
		if err := <-results; err != nil && first == nil {
			first = err
			cancel(err)
		}
	}
	return first
}
