package tidings

import (
	"errors"
	"time"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/internal/fanout"
	"github.com/tidings-go/tidings/source"
)

// EventType is the type of an [Event]: Added, Updated or Deleted.
type EventType = change.Type

const (
	// Added is an object that is new to the handler.
	Added = change.Added
	// Updated is a new state of an object, or a resync of the same one.
	Updated = change.Updated
	// Deleted is the end of an object.
	Deleted = change.Deleted
)

// Event is one change of the cache. Its objects are shared and read-only.
type Event[T Object] struct {
	// Type says what happened.
	Type EventType
	// Initial marks an Added that belongs to the initial set: the first list, or
	// what was cached when the handler joined.
	Initial bool
	// Tombstone marks a Deleted whose final state is unknown, because the delete
	// was found by a list, or because the transform failed for that state or the
	// object left the selection: Old is the last known state.
	Tombstone bool
	// Moved marks a Tombstone of an object that exists: its slot has left Selection.Slots.
	Moved bool
	// Resync marks an Updated that repeats the cached state: Old and New are the
	// same object.
	Resync bool
	// Old is the state before. Updated and Deleted have one: for Deleted it is
	// the last state, with the version of the deletion unless Tombstone is set.
	Old T
	// New is the new state. Added and Updated have one.
	New T
}

// Object returns the newest state that the event carries: Old of a Deleted, New
// otherwise.
func (e Event[T]) Object() T {
	if e.Type == Deleted {
		return e.Old
	}
	return e.New
}

// Key returns the key of the object: namespace/name, or the name alone.
func (e Event[T]) Key() string {
	obj := e.Object()
	return source.Key(obj.GetNamespace(), obj.GetName())
}

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

// Policy says what happens to a handler that falls behind.
type Policy fanout.Policy

const (
	// PolicyConflateUpdates folds, in a backlog beyond its limit, consecutive updates of one
	// incarnation of an object into one: Old is the state that the handler saw last. Every
	// add and every delete stays. It is the default.
	PolicyConflateUpdates = Policy(fanout.ConflateUpdates)
	// PolicyConflateState keeps, in a backlog beyond its limit, at most one notification for each
	// key. Objects that came and went unseen are left out, and counted.
	PolicyConflateState = Policy(fanout.ConflateState)
	// PolicyBlock stops the cache and every other handler while the handler is at its limit. It
	// is dangerous.
	PolicyBlock = Policy(fanout.Block)
	// PolicyUnbounded keeps everything, whatever memory it takes.
	PolicyUnbounded = Policy(fanout.Unbounded)
)

// String returns the name of the policy.
func (p Policy) String() string { return fanout.Policy(p).String() }

// HandlerOptions are the choices of one handler. The zero value is ready.
type HandlerOptions struct {
	// Name is what health, logs and panics call the handler. The default is
	// "handler-" and a number.
	Name string
	// Policy says what happens when more than Limit notifications are pending.
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

// eventOf returns the event that a handler receives for a change of the log.
func eventOf[T Object](n change.Change[T]) Event[T] {
	e := Event[T]{
		Type: n.Type, Initial: n.Initial, Tombstone: n.Tombstone, Moved: n.Moved, Resync: n.Resync,
		Old: n.Old, New: n.New,
	}
	if n.Type == change.Deleted {
		// The log carries the state that the handler knew and the final one. A handler
		// gets the final one, which says more.
		var none T
		e.Old, e.New = n.New, none
	}
	return e
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

// Health says how the handler is.
func (r *Registration) Health() HandlerHealth { return engine.HandlerHealth(r.subscription) }
