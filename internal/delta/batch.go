package delta

import "github.com/tidings-go/tidings/internal/change"

// Mark says which version a scope has reached.
type Mark struct {
	Scope   string
	Version string
}

// Batch is what one [Queue.Pop] hands on. Its slices are valid until process returns.
type Batch[T any] struct {
	Changes  []change.Change[T] // in order; of a Replace: deletes first, then the rest
	Marks    []Mark             // the versions reached once this batch is applied, a scope at most once, after what Removed says; of a Replace, its own scope first
	Replaced bool               // the result of a Replace, which is always alone in its batch
	Removed  []string           // the scopes that this batch removes, always alone in its batch
	Synced   bool               // this batch completes the initial set: every scope has been replaced once; true in one batch only
	Resync   []any              // tokens of the resyncs that stand after the deltas of this batch
}

// says reports whether the batch tells its consumer anything.
func (b *Batch[T]) says() bool {
	return len(b.Changes) > 0 || len(b.Marks) > 0 || len(b.Resync) > 0 || b.Replaced || len(b.Removed) > 0
}
