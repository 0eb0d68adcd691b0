package delta

import "fmt"

// Item is one object as a producer knows it.
type Item[T any] struct {
	Key     string // identity within the collection; it begins with the scope's prefix
	Version string // the object's version; "" when unknown
	UID     string // the object's incarnation; "" when unknown
	Object  T
}

// EventType says what a producer saw. The zero value is not valid.
type EventType uint8

const (
	// Set means that the object is now in this state. Whether that adds or updates it is decided by the known state.
	Set EventType = iota + 1
	// Delete means that the object is gone; the Item is its final state.
	Delete
	// Gone means that the object is gone and that its final state cannot be used. The state known at that
	// point stands in, as a tombstone; the Object of the Item means nothing.
	Gone
)

// String returns "set", "delete" or "gone".
func (t EventType) String() string {
	switch t {
	case Set:
		return "set"
	case Delete:
		return "delete"
	case Gone:
		return "gone"
	}
	return fmt.Sprintf("EventType(%d)", uint8(t))
}

// Change is one thing that happened to one object.
type Event[T any] struct {
	Type EventType
	Item[T]
}

// Queued is a pending change, as [Queue.List] and [Queue.Get] show it.
type Queued[T any] struct {
	Event[T]
	Replace bool // an item of a pending Replace
	Taken   bool // in the batch that is being processed
}
