package delta

import "github.com/tidings-go/tidings/internal/engine/change"

// Item is one object as a producer knows it.
type Item[T any] struct {
	Key     string // identity in the collection; it begins with the partition's prefix
	Version string // the object's version; "" when unknown
	UID     string // the object's incarnation; "" when unknown
	Object  T
}

// EventType is the type of an [Event]. The zero value is not valid.
type EventType uint8

const (
	// Set means that the object is now in this state. The known state decides whether that
	// adds or updates it.
	Set EventType = iota + 1
	// Delete means that the object is gone; the Item is its final state.
	Delete
	// Gone means that the object is gone and that its final state cannot be used. The state
	// known at that point is used as a tombstone; the Object of the Item means nothing.
	Gone
	// Merged means that a list of some objects of the partition has the object in this state. It is
	// a Set that may be older than the last list of the partition, which did not ask for it.
	Merged
)

// Event is one event of a watch.
type Event[T any] struct {
	Type EventType
	// Unusable marks a Set or a Merged as [Unusable]: it has no Object, and Err is that of it.
	Unusable bool
	Item[T]
	Err error
}

// Mark has the version that a partition has reached.
type Mark struct {
	Partition string
	Version   string
}

// Batch is the result of one [Queue.Pop]. It and its slices are valid until process returns.
type Batch[T any] struct {
	// Changes are in order. Those of a Replace are deletes first, then the rest.
	Changes []change.Change[T]
	// Marks are the versions reached once this batch is applied, at most one per partition,
	// after the removal of Removed. A Replace has the mark of its own partition first.
	Marks []Mark
	// Replaced marks the batch of a Replace.
	Replaced bool
	// Removed are the partitions that this batch removes; it has no other changes.
	Removed []string
	// Synced marks the one batch that completes the initial set: every partition has been
	// replaced once.
	Synced bool
	// Unusable are the objects that have become unusable.
	Unusable []Unusable
	// Resync has the tokens of the resyncs that follow the changes of this batch.
	Resync []any
}

// empty reports whether the batch has nothing for the consumer.
func (b *Batch[T]) empty() bool {
	return len(b.Changes) == 0 && len(b.Marks) == 0 && len(b.Resync) == 0 &&
		len(b.Unusable) == 0 && !b.Replaced && len(b.Removed) == 0
}
