package tidings

import "github.com/tidings-go/tidings/internal/engine"

// Registration is a handler's place in an informer. It may be compared.
type Registration struct {
	subscription engine.Subscription
	unlist       func() // takes it off its handle
}

// Name returns the name of the handler.
func (r *Registration) Name() string { return r.subscription.Name() }

// Remove ends the calls of the handler: the one that is running may finish, none
// follows. It does not wait and may be called from the handler itself, and more
// than once.
func (r *Registration) Remove() {
	r.subscription.Remove()
	r.unlist()
}

// Done is closed when no call of the handler is running or will follow, after
// Remove or after the informer has stopped.
func (r *Registration) Done() <-chan struct{} { return r.subscription.Done() }

// Synced is closed when the informer is synced and the handler has returned from
// every add of its initial set.
func (r *Registration) Synced() <-chan struct{} { return r.subscription.Synced() }

// HasSynced reports whether Synced is closed.
func (r *Registration) HasSynced() bool { return r.subscription.HasSynced() }

// Health returns the health of the handler.
func (r *Registration) Health() HandlerHealth { return engine.HandlerHealth(r.subscription) }
