package tidings

import (
	"errors"
	"fmt"
	"time"

	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/engine/fanout"
)

// Handler receives every change of an informer's cache, one call at a time, in
// order, after the cache holds the change. [Funcs] is the usual one.
type Handler[T Object] interface {
	Handle(Event[T])
}

// HandlerFunc is a [Handler] that is one function.
type HandlerFunc[T Object] func(Event[T])

// Handle calls f.
func (f HandlerFunc[T]) Handle(e Event[T]) { f(e) }

// Funcs is a [Handler] with a function for each type of event. Those that are nil
// are left out; one that is not nil is required.
type Funcs[T Object] struct {
	// OnAdd is called with an object that is new to the handler. Initial marks
	// the initial set.
	OnAdd func(obj T, initial bool)
	// OnUpdate is called with the states before and after. They are the same
	// object for a resync, and differ in UID when another object took the name.
	OnUpdate func(old, new T)
	// OnDelete is called with the last known state.
	OnDelete func(last T)
}

// Handle calls the function for the event.
func (f Funcs[T]) Handle(e Event[T]) {
	switch {
	case e.Type == Added && f.OnAdd != nil:
		f.OnAdd(e.New, e.Initial)
	case e.Type == Updated && f.OnUpdate != nil:
		f.OnUpdate(e.Old, e.New)
	case e.Type == Deleted && f.OnDelete != nil:
		f.OnDelete(e.Old)
	}
}

// Policy decides about the backlog of a handler that falls behind.
type Policy = fanout.Policy

const (
	// PolicyConflateUpdates folds, in a backlog beyond its limit, consecutive updates of one
	// incarnation of an object into one: Old is the state that the handler saw last. Every
	// add and every delete stays. It is the default.
	PolicyConflateUpdates = fanout.ConflateUpdates
	// PolicyConflateState keeps, in a backlog beyond its limit, at most one notification for each
	// key. Objects that came and went unseen are left out, and counted.
	PolicyConflateState = fanout.ConflateState
	// PolicyBlock stops the cache and every other handler while the handler is at its limit. It
	// is dangerous.
	PolicyBlock = fanout.Block
	// PolicyUnbounded keeps everything, whatever memory it takes.
	PolicyUnbounded = fanout.Unbounded
)

// HandlerOptions are the choices of one handler. The zero value is ready.
type HandlerOptions struct {
	// Name names the handler in health, logs and panics. The default is "handler-" and a number.
	Name string
	// Policy applies when more than Limit notifications are pending.
	Policy Policy
	// Limit is that number. The initial adds do not count. 0 means 10,000, and one more for
	// each cached object unless Policy is PolicyBlock.
	Limit int
	// Resync is the period after which the handler receives every cached
	// object again, as an Updated whose Old and New are the same; 0 is never, the
	// least is a millisecond. It never asks the server.
	Resync time.Duration
	// IsolatePanics keeps the process alive when the handler panics. The
	// notification is lost, counted in Health and logged. Without it, the process ends with
	// a panic that names the handler, the informer and the key.
	IsolatePanics bool
}

var (
	errNilHandler = errors.New("the handler is nil: " +
		"pass a Funcs, a HandlerFunc or a Handler of your own")
	errNoFuncs = errors.New("the Funcs has no function: set OnAdd, OnUpdate or OnDelete")
)

// checkHandler returns an error for a handler that cannot be called, or does nothing.
func checkHandler[T Object](h Handler[T]) error {
	switch h := h.(type) {
	case nil:
		return errNilHandler
	case HandlerFunc[T]:
		if h == nil {
			return errNilHandler
		}
	case Funcs[T]:
		if h.OnAdd == nil && h.OnUpdate == nil && h.OnDelete == nil {
			return errNoFuncs
		}
	case *Funcs[T]:
		if h == nil {
			return errNilHandler
		}
		return checkHandler[T](*h)
	}
	return nil
}

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

// leastResync is the least period of resyncs. A shorter one keeps the processor busy.
const leastResync = time.Millisecond

// check returns an error that names the first option that cannot be used.
func (o HandlerOptions) check() error {
	switch {
	case o.Resync < 0 || o.Resync > 0 && o.Resync < leastResync:
		return badOption("HandlerOptions.Resync", o.Resync,
			fmt.Sprintf("give %v or more, or 0 for none", leastResync))
	case o.Limit < 0:
		return badOption("HandlerOptions.Limit", o.Limit,
			"give a number of notifications, or 0 for the default")
	case o.Policy > PolicyUnbounded:
		return badOption("HandlerOptions.Policy", uint8(o.Policy),
			"use one of PolicyConflateUpdates, PolicyConflateState, PolicyBlock and PolicyUnbounded")
	}
	return nil
}
