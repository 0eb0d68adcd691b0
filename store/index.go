package store

import (
	"cmp"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
)

// IndexFunc returns the values by which an index finds an object: none, one or
// several. Their order does not matter, and one that is given twice counts once. The
// empty string is a value like any other.
//
// It must return the same values for the same object and must not change it. It runs on the
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

// index is one index in one state.
type index[T any] struct {
	id       any // comparable
	function IndexFunc[T]
	entries  tree[position, entry[T]]
}

func (x index[T]) check() error {
	switch {
	case x.id == nil, x.id == "":
		return ErrIndexName
	case !reflect.ValueOf(x.id).Comparable():
		return indexError(x.id, ErrIndexName)
	case x.function == nil:
		return indexError(x.id, ErrIndexFunc)
	}
	return nil
}

// entry is an object's entry under one value.
type entry[T any] struct {
	value  string
	anchor *anchor[T]
}

// position is a point in the order of entries: at a value and key, or after all keys of a value
// that begin with the key.
type position struct {
	value, key string
	after      bool
}

func (e entry[T]) compare(p position) int {
	if order := strings.Compare(e.value, p.value); order != 0 {
		return order
	}
	if p.after && p.key == "" {
		return -1
	}
	key := e.anchor.newest.Load().key
	if p.after && strings.HasPrefix(key, p.key) {
		return -1
	}
	return strings.Compare(key, p.key)
}

// place is a value of an index under which an object has an entry.
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
