package controller

import (
	"context"
	"fmt"
	"sync"

	"github.com/tidings-go/tidings/internal/lead/written"
)

// broadcast wakes all goroutines that wait for a change.
type broadcast struct {
	mu   sync.Mutex // guards next
	next chan struct{}
}

// wait returns a channel that is closed by the next send.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

// await waits until a send after which done reports true. It returns false if ctx ends first.
func (b *broadcast) await(ctx context.Context, done func() bool) bool {
	for {
		changed := b.wait()
		if done() {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}

// WaitUntilReconciled waits until a call for a key has succeeded that began with the given resource
// version of the object or a later one. If the object does not exist at that version, it waits
// until the calls for its end have succeeded. A version that Options.Ignore ignores leads to no
// call, and is not reached. It is for tests and scripts. It waits while the controller does not run
// too.
func (c *Controller[T]) WaitUntilReconciled(ctx context.Context, key, version string) error {
	if c.succeeded.await(ctx, func() bool { return c.isReconciled(key, version) }) {
		return nil
	}
	return fmt.Errorf("controller %q: waiting until %q is reconciled at version %s: %w",
		c.o.Name, key, version, context.Cause(ctx))
}

func (c *Controller[T]) isReconciled(key, version string) bool {
	r := c.running.Load()
	if r == nil {
		return false
	}
	reconciled, called := r.incarnations.Reconciled(key)
	if called {
		return written.Reaches(reconciled, version)
	}
	primary := c.informers.Primary()
	namespace, _ := written.SplitKey(key)
	reached, held := primary.Reached(namespace)
	_, _, cached := primary.Cached(key)
	return held && !cached && written.Reaches(reached, version)
}
