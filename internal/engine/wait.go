package engine

import (
	"context"

	"github.com/tidings-go/tidings/health"
)

// Await waits until done returns true, or an error. It fails with ErrStopped or ErrReleased
// when the collection ends.
func (c *Collection[T]) Await(ctx context.Context, done func() (bool, error)) error {
	return c.progress.await(ctx, func() (bool, error) {
		if err := c.Over(); err != nil {
			return false, err
		}
		return done()
	})
}

// Reflects reports whether the cache of every namespace has reached a version.
func (c *Collection[T]) Reflects(version string) bool { return c.progress.reflects(version) }

// Reached returns the version that the cache has reached for the objects of a namespace, ""
// before the first list. ok is false if the collection does not hold that namespace.
func (c *Collection[T]) Reached(namespace string) (version string, ok bool) {
	partition, ok := c.progress.of(Prefix(namespace))
	return partition.version, ok
}

// Lacks reports whether the collection holds a namespace, and its first list is not in the cache.
func (c *Collection[T]) Lacks(namespace string) bool {
	partition, ok := c.progress.of(Prefix(namespace))
	return ok && !partition.listed
}

// InSync reports whether the collection follows the server and holds a complete list of
// every namespace, with those that were added after the first complete list, and no object of one that
// was removed.
func (c *Collection[T]) InSync() bool {
	return c.Over() == nil && c.HasSynced() && c.progress.complete()
}

// InState reports whether the list and watch of a namespace is in one of some states.
func (c *Collection[T]) InState(match func(health.State) bool) bool {
	for _, p := range c.parts.present() {
		if match(p.health().State) {
			return true
		}
	}
	return false
}
