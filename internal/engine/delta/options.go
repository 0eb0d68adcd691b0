package delta

import (
	"errors"
	"fmt"
	"iter"
	"slices"
)

// Known is the state after the last processed batch, for example a snapshot of a store. It
// must not change while a Pop reads it.
type Known[T any] interface {
	// Get returns the state of a key, and whether it exists.
	Get(key string) (T, bool)
	// Prefix yields the objects whose keys begin with prefix, ascending by key. Pop panics if
	// they are not in that order, because it would report deletes that did not happen.
	Prefix(prefix string) iter.Seq2[string, T]
}

// Options configures a [Queue]. Only Known is required.
type Options[T any] struct {
	// Known returns the state after the last processed batch. Pop calls it once per segment,
	// on the consumer's goroutine. Required.
	Known func() Known[T]
	// Describe returns the version and UID of a known object, "" where it has none. Nil: the
	// versions of known objects are unknown, so every item of a Replace is a change, and only
	// replays within one batch are detected.
	Describe func(T) (version, uid string)
	// Compare orders two versions of one collection: negative if a is before b, 0 if equal,
	// positive if after; ok is false where they cannot be ordered. It must be safe for
	// concurrent use and not call the queue. Nil: nothing is compared, and every event and item is
	// applied. That is for producers whose objects and lists do not take versions from one
	// sequence, as fakes do. See [CompareDecimal].
	Compare func(a, b string) (order int, ok bool)
	// Partitions are the key prefixes with a producer each, for example "ns1/" and "ns2/".
	// None may be a prefix of another. Empty: one partition "", for all keys.
	Partitions []string
	// ReportUnchanged makes a Replace report each object that it finds unchanged as an Updated
	// with Unchanged set.
	ReportUnchanged bool
	// UnknownDeletes reports whether a Delete of an unknown key is a change at present, with the
	// object of the event as the old one too. Nil: it is dropped.
	UnknownDeletes func() bool
	// Limit is the number of pending changes at which producers wait. 0: 10,000.
	Limit int
	// RememberDeletes is the number of deleted keys whose replayed older states are told apart
	// from a new object. 0: 1,024. Negative: none.
	RememberDeletes int
}

// ReplaceOptions configures one [Queue.Replace].
type ReplaceOptions struct {
	// NewHistory marks a list that begins a new history of its partition: versions from
	// before it mean nothing.
	NewHistory bool
	// Stays are the objects that the list has in a state that cannot be used: the state known at
	// that point stays, unless it is of another incarnation or the list begins a new history. If a
	// key is also that of an item, the item's state counts.
	Stays []Unusable
	// Moved reports whether an object that is known and not in the list has left the collection,
	// and may still exist: its end is marked Moved. nil marks none.
	Moved func(key, uid string) bool
}

// settled returns the options with defaults in place of zeros, or an error that names the
// option that cannot be used.
func (o Options[T]) settled() (Options[T], error) {
	if o.Known == nil {
		return o, errors.New("delta: Options.Known is nil; " +
			"give a function that returns the state after the last processed batch")
	}
	if o.Limit < 0 {
		return o, fmt.Errorf("delta: Options.Limit is %d; "+
			"give a number of changes, or 0 for the default", o.Limit)
	}
	if o.Limit == 0 {
		o.Limit = 10_000
	}
	if o.RememberDeletes == 0 {
		o.RememberDeletes = 1024
	}
	if o.Compare == nil {
		o.Compare = func(string, string) (int, bool) { return 0, false }
	}
	if o.Describe == nil {
		o.Describe = func(T) (string, string) { return "", "" }
	}
	if o.UnknownDeletes == nil {
		o.UnknownDeletes = func() bool { return false }
	}
	if len(o.Partitions) == 0 {
		o.Partitions = []string{""}
	}
	o.Partitions = slices.Sorted(slices.Values(o.Partitions))
	if err := checkOverlap(o.Partitions); err != nil {
		return o, fmt.Errorf("delta: Options.Partitions: %w", err)
	}
	return o, nil
}
