package delta

import "fmt"

// Type says what a delta does to the collection. The zero value is not valid.
type Type uint8

const (
	// Added is a key that was not known before.
	Added Type = iota + 1
	// Updated is a new state of a known key; Old and New may differ in UID.
	Updated
	// Deleted is a known key that is gone.
	Deleted
)

// String returns "added", "updated" or "deleted".
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

// Delta is one settled change of the collection.
type Delta[T any] struct {
	Type      Type
	Initial   bool // part of the first Replace of its scope, before the initial set was complete
	Tombstone bool // Deleted, the final state unknown: missing in a Replace, or Gone
	Unchanged bool // Updated by a Replace that found the same Version and UID; only with Options.ReportUnchanged
	Key       string
	Old       T // Updated, Deleted: the state before this delta; Added: the zero value
	New       T // Added, Updated: the new state; Deleted: the final state as it was sent, or the last known one for a tombstone
}

// Mark says which version a scope has reached.
type Mark struct {
	Scope   string
	Version string
}

// Batch is what one [Queue.Pop] hands on. Its slices are valid until process returns.
type Batch[T any] struct {
	Deltas   []Delta[T] // in order; of a Replace: deletes first, then the rest
	Marks    []Mark     // the versions reached once this batch is applied, a scope at most once, after what Removed says; of a Replace, its own scope first
	Replaced bool       // the result of a Replace, which is always alone in its batch
	Removed  []string   // the scopes that this batch removes, always alone in its batch
	Synced   bool       // this batch completes the initial set: every scope has been replaced once; true in one batch only
	Resync   []any      // tokens of the resyncs that stand after the deltas of this batch
}

// says reports whether the batch tells its consumer anything.
func (b *Batch[T]) says() bool {
	return len(b.Deltas) > 0 || len(b.Marks) > 0 || len(b.Resync) > 0 || b.Replaced || len(b.Removed) > 0
}
