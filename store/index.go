package store

import (
	"cmp"
	"iter"
	"runtime/debug"
	"slices"
	"strings"
)

// IndexFunc says under which values an object stands in an index: none, one or
// several. Their order does not matter, and one that is given twice counts once. The
// empty string is a value like any other.
//
// It must answer the same for the same object and must not change it. It runs on the
// goroutine that writes, in an Update that readers do not wait for and other
// writers do; it must not write to the store. If it returns an error or panics, the
// object has no entry in that index, see [IndexError].
type IndexFunc[T any] func(object T) ([]string, error)

// call runs the function and turns a panic into an error.
func (f IndexFunc[T]) call(object T) (values []string, err error) {
	defer func() {
		if value := recover(); value != nil {
			values, err = nil, &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return f(object)
}

// index is one named index in one state.
type index[T any] struct {
	name     string
	function IndexFunc[T]
	entries  tree[position, entry[T]]
}

func (x index[T]) check() error {
	switch {
	case x.name == "":
		return ErrIndexName
	case x.function == nil:
		return indexError(x.name, ErrIndexFunc)
	}
	return nil
}

// entry says that an object has a value.
type entry[T any] struct {
	value  string
	anchor *anchor[T]
}

// position is a place between entries: at a value and key, or after all keys of a value.
type position struct {
	value, key string
	after      bool
}

func (e entry[T]) compare(p position) int {
	if order := strings.Compare(e.value, p.value); order != 0 {
		return order
	}
	if p.after {
		return -1
	}
	return strings.Compare(e.anchor.newest.Load().key, p.key)
}

// place is where an object stands: under which value of which index.
type place struct {
	index int
	value string
}

func comparePlaces(a, b place) int {
	if order := cmp.Compare(a.index, b.index); order != 0 {
		return order
	}
	return strings.Compare(a.value, b.value)
}

func hasPlace(places []place, p place) bool {
	_, found := slices.BinarySearchFunc(places, p, comparePlaces)
	return found
}

// Index is one index of a [Snapshot]. As that, it stays as it is however long it
// is held, and may be copied and used by several goroutines.
type Index[T any] struct {
	state   *state[T]
	entries tree[position, entry[T]]
}

// Lookup yields the objects that have the value, with their keys, ascending by key.
// It costs a search and then a few nanoseconds per object; nothing is copied. The
// sequence can be ranged over any number of times.
func (x Index[T]) Lookup(value string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		x.entries.from(position{value: value}, func(e entry[T]) bool {
			if e.value != value {
				return false
			}
			r := x.state.at(e.anchor)
			return yield(r.key, r.object)
		})
	}
}

// Len counts the objects that have the value, without visiting them.
func (x Index[T]) Len(value string) int {
	return x.entries.rank(position{value: value, after: true}) - x.entries.rank(position{value: value})
}

// Values yields the values that objects have, each once, in ascending order. It costs
// a search per value. The sequence can be ranged over any number of times.
func (x Index[T]) Values() iter.Seq[string] {
	return func(yield func(string) bool) {
		next, more := position{}, true
		for more {
			more = false
			x.entries.from(next, func(e entry[T]) bool {
				next, more = position{value: e.value, after: true}, true
				return false
			})
			if more && !yield(next.value) {
				return
			}
		}
	}
}

// canonical returns the value as the index already holds it, so that objects which
// share a value share the string, or else a copy, so that the index keeps no
// larger buffer alive that the value may be a part of.
func canonical[T any](entries tree[position, entry[T]], value string) string {
	shared, found := "", false
	entries.from(position{value: value}, func(e entry[T]) bool {
		shared, found = e.value, e.value == value
		return false
	})
	if found {
		return shared
	}
	return strings.Clone(value)
}
