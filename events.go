package tidings

import (
	"context"
	"iter"

	"github.com/tidings-go/tidings/internal/engine/change"
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
	// Type is the type of the change.
	Type EventType
	// Initial marks an Added that belongs to the initial set: the first list, or the objects that
	// were cached when the handler joined.
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

func eventOf[T Object](n change.Change[T]) Event[T] {
	e := Event[T]{
		Type: n.Type, Initial: n.Initial, Tombstone: n.Tombstone, Moved: n.Moved, Resync: n.Resync,
		Old: n.Old, New: n.New,
	}
	if n.Type == change.Deleted {
		// The log carries the state that the handler knew and the final one. A handler
		// gets the final one, the later of the two.
		var none T
		e.Old, e.New = n.New, none
	}
	return e
}

// Events returns a handler as a loop: it yields an Added for every cached object
// and then every change, until ctx ends or the loop is left, which removes the handler. If the
// loop ends for another reason, the last pair has an error and no event: ErrStopped if the
// informer has stopped, ErrReleased if the handle was released. A loop that is slow falls
// behind as a handler does (see [PolicyConflateUpdates]).
//
//	for e, err := range pods.Events(ctx) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(e.Type, e.Key())
//	}
//
// The sequence may be used once.
func (i *Informer[T]) Events(ctx context.Context) iter.Seq2[Event[T], error] {
	return func(yield func(Event[T], error) bool) {
		left := make(chan struct{})
		defer close(left)
		events := make(chan Event[T])
		registration, err := i.AddHandler(HandlerFunc[T](func(e Event[T]) {
			select {
			case events <- e:
			case <-left:
			case <-ctx.Done():
			}
		}), HandlerOptions{Name: "events"})
		if err != nil {
			if ctx.Err() == nil {
				yield(Event[T]{}, err)
			}
			return
		}
		defer registration.Remove()
		for {
			select {
			case e := <-events:
				if !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			case <-registration.Done():
				if ctx.Err() == nil {
					c, err := i.held()
					if err == nil {
						err = informerError(i.Name(), c.Over())
					}
					yield(Event[T]{}, err)
				}
				return
			}
		}
	}
}
