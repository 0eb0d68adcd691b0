package change

import "fmt"

// Type is the type of a change. The zero value is not valid.
type Type uint8

const (
	// Added is an object that was not there before.
	Added Type = iota + 1
	// Updated is a new state of an object, or a repetition of the same one.
	Updated
	// Deleted is the end of an object.
	Deleted
)

// String returns the name of the type.
func (t Type) String() string {
	switch t {
	case Added:
		return "Added"
	case Updated:
		return "Updated"
	case Deleted:
		return "Deleted"
	}
	return fmt.Sprintf("Type(%d)", uint8(t))
}

// Change is one change of one object. All handlers share the objects: they are read-only.
type Change[T any] struct {
	// Type is the type of the change.
	Type Type
	// Initial marks an Added of an initial set: of the first list, or of the snapshot that
	// a late handler starts with.
	Initial bool
	// Tombstone marks a Deleted whose final state is unknown: a list did not have the
	// object, or its final state could not be used. New is the last known state.
	Tombstone bool
	// Moved marks a Tombstone of an object that exists, and has left the selection of the
	// collection because its slot has.
	Moved bool
	// Unchanged marks an Updated of a list that has the version and the UID that were known.
	Unchanged bool
	// Resync marks an Updated that repeats a state: Old and New are the same.
	Resync bool
	// Key is the key of the object.
	Key string
	// Old is the state before an Updated or a Deleted; the zero value for an Added.
	Old T
	// New is the state after; for a Deleted the final state, or the last known one.
	New T
}
