package fanout

import "fmt"

// Type says what happened to an object.
type Type uint8

// The types of a notification.
const (
	// Added: the handler has not seen this object, or has seen its deletion.
	Added Type = iota + 1
	// Updated: the handler has seen Notification.Old; New is the state after it.
	Updated
	// Deleted: the object is gone.
	Deleted
)

// String returns the name of the type, in lower case.
func (t Type) String() string {
	switch t {
	case Added:
		return "added"
	case Updated:
		return "updated"
	case Deleted:
		return "deleted"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Notification is one change of one object, as a handler is told of it. The
// objects are shared by all handlers and must not be changed.
type Notification[T any] struct {
	// Type says what happened.
	Type Type
	// Initial marks an Added of an initial set: of the first list as published,
	// or of the snapshot that a late subscriber starts with.
	Initial bool
	// Tombstone marks a Deleted whose final state is unknown: New is the last
	// state that is known.
	Tombstone bool
	// Resync marks an Updated that replays a state the handler has seen before:
	// Old and New are the same.
	Resync bool
	// Key is the object's key in the cache.
	Key string
	// Old is the state before: of an Updated the one that the handler saw last,
	// of a Deleted the one that was known before. The zero value for an Added.
	Old T
	// New is the state after: of a Deleted the final state, as far as it is
	// known.
	New T
}
