package delta

import (
	"fmt"
	"slices"
)

// Options configures a [Queue]. Only Known is required.
type Options[T any] struct {
	// Known returns the state after the last processed batch. It is called once per Pop, on the consumer's goroutine. Required.
	Known func() Known[T]
	// Describe returns the version and UID of a known object, "" for what it has not got. Nil: those of known objects are
	// unknown, so every item of a Replace is a change and only what is in one batch can be told from a replay.
	Describe func(T) (version, uid string)
	// Compare orders two versions of one collection: negative if a is before b, 0 if equal, positive if after; ok is false where they cannot be
	// ordered. It must be safe for concurrent use and not call the queue. Nil: nothing is compared, what arrives is applied; right for a producer whose
	// objects and lists do not take their versions from one sequence, as fakes do. See CompareDecimal.
	Compare func(a, b string) (order int, ok bool)
	// Scopes are the key prefixes that are filled by producers of their own, for example "ns1/" and "ns2/". None may be a prefix of another.
	// Empty: one scope "", which is everything.
	Scopes []string
	// ReportUnchanged makes a Replace report each object that it finds unchanged as an Updated with Unchanged set.
	ReportUnchanged bool
	// FoldAbove is the number of pending changes above which consecutive updates of one incarnation of a key fold into the newest. 0: 1,000.
	FoldAbove int
	// Limit is the number of pending changes at which producers wait. 0: 10,000.
	Limit int
	// RememberDeletes is the number of deleted keys whose replayed older states are told apart from a new object. 0: 1,024. Negative: none.
	RememberDeletes int
}

// ReplaceOptions configures one [Queue.Replace].
type ReplaceOptions struct {
	// NewHistory says that the list begins a new history of its scope, so that versions of before it mean nothing.
	NewHistory bool
	// Stays are the keys of objects that the list has in a state that cannot be used: the state known at that point stays,
	// unless the list begins a new history. If a key is also that of an item, the item's state counts.
	Stays []string
}

// settled returns the options with defaults in place of zeros, or an error that names the option that cannot be used.
func (o Options[T]) settled() (Options[T], error) {
	if o.Known == nil {
		return o, fmt.Errorf("delta: Options.Known is nil; give a function that returns the state after the last processed batch")
	}
	if o.FoldAbove < 0 {
		return o, fmt.Errorf("delta: Options.FoldAbove is %d; give a number of changes, or 0 for the default", o.FoldAbove)
	}
	if o.Limit < 0 {
		return o, fmt.Errorf("delta: Options.Limit is %d; give a number of changes, or 0 for the default", o.Limit)
	}
	if o.FoldAbove == 0 {
		o.FoldAbove = 1000
	}
	if o.Limit == 0 {
		o.Limit = 10_000
	}
	switch {
	case o.RememberDeletes == 0:
		o.RememberDeletes = 1024
	case o.RememberDeletes < 0:
		o.RememberDeletes = 0
	}
	if o.Compare == nil {
		o.Compare = func(string, string) (int, bool) { return 0, false }
	}
	if o.Describe == nil {
		o.Describe = func(T) (string, string) { return "", "" }
	}
	if len(o.Scopes) == 0 {
		o.Scopes = []string{""}
	}
	o.Scopes = slices.Sorted(slices.Values(o.Scopes))
	if err := checkOverlap(o.Scopes); err != nil {
		return o, fmt.Errorf("delta: Options.Scopes: %w", err)
	}
	return o, nil
}
