package store

import (
	"iter"
	"strings"
)

// Index is one index of a [Snapshot], or the part of it that [Index.Within] returns. As
// that, it stays as it is however long it is held, and may be copied and used by
// several goroutines.
type Index[T any] struct {
	state   *state[T]
	entries tree[position, entry[T]]
	prefix  string // of the keys
}

// Within returns the part of the index whose keys begin with the prefix, in O(1). Queries
// visit only the objects of that part.
func (x Index[T]) Within(prefix string) Index[T] {
	switch {
	case strings.HasPrefix(prefix, x.prefix):
		x.prefix = prefix
	case !strings.HasPrefix(x.prefix, prefix):
		x.entries.root = nil // no key begins with both
	}
	return x
}

func (x Index[T]) first(value string) position { return position{value: value, key: x.prefix} }

func (x Index[T]) last(value string) position {
	return position{value: value, key: x.prefix, after: true}
}

// Lookup yields the objects that have the value, with their keys, ascending by key.
// It costs a search and then a few nanoseconds per object; nothing is copied. The
// sequence can be ranged over any number of times.
func (x Index[T]) Lookup(value string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		x.entries.from(x.first(value), func(e entry[T]) bool {
			if e.value != value {
				return false
			}
			r := x.state.at(e.anchor)
			return strings.HasPrefix(r.key, x.prefix) && yield(r.key, r.object)
		})
	}
}

// LookupAny yields the objects that have at least one of the values, each once, with their
// keys, ascending by key. It costs a search per value and a few allocations, and none
// per object. It keeps values, which must not change. The sequence can be ranged over any
// number of times.
func (x Index[T]) LookupAny(values []string) iter.Seq2[string, T] {
	if len(values) == 1 {
		return x.Lookup(values[0])
	}
	return func(yield func(string, T) bool) {
		merge(x, values, func(r *item[T]) bool { return yield(r.key, r.object) })
	}
}

// Len counts the objects that have the value, without visiting them.
func (x Index[T]) Len(value string) int {
	return x.entries.rank(x.last(value)) - x.entries.rank(x.first(value))
}

// Entries returns the number of entries: an object has one for each of its values.
func (x Index[T]) Entries() int {
	if x.prefix == "" {
		return x.entries.len()
	}
	n := 0
	for value := range x.Values() {
		n += x.Len(value)
	}
	return n
}

// Values yields the values that objects have, each once, in ascending order. It costs
// a search per value. The sequence can be ranged over any number of times.
func (x Index[T]) Values() iter.Seq[string] {
	return func(yield func(string) bool) {
		next, more := position{}, true
		for more {
			more = false
			var value string
			x.entries.from(next, func(e entry[T]) bool {
				value, more = e.value, true
				return false
			})
			next = position{value: value, after: true}
			if more && (x.prefix == "" || x.Len(value) > 0) && !yield(value) {
				return
			}
		}
	}
}
