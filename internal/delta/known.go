package delta

import "iter"

// Known is the state that changes are resolved against: that after the last processed batch. It must not change while a Pop
// reads it; a snapshot of a store is one.
type Known[T any] interface {
	// Get returns the state of a key, and whether it exists.
	Get(key string) (T, bool)
	// Prefix iterates over the keys that begin with prefix, ascending by key. Pop panics if they are not in that order,
	// because it would report deletes that did not happen.
	Prefix(prefix string) iter.Seq2[string, T]
}
