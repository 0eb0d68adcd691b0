package store

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"runtime/debug"
	"slices"

	"github.com/tidwall/btree"
)

// Errors of indexes.
var (
	// ErrIndexExists is an index name that is taken.
	ErrIndexExists = errors.New("store: an index of this name exists already: use it, or choose another name")
	// ErrNoIndex is an index name that is not known.
	ErrNoIndex = errors.New("store: no index of this name")
	errNoName  = errors.New("store: an index needs a name")
	errNilFunc = errors.New("store: the function of an index is nil")
)

// IndexFunc returns the values under which an index finds an object: none, one or
// several. It must be a function of the object alone.
type IndexFunc[T any] func(T) ([]string, error)

// IndexError says that an object has no entry in an index, and why.
type IndexError struct {
	// Index and Key name the index and the object.
	Index, Key string
	// Err is what the index function returned, or a *PanicError.
	Err error
}

// Error names the index, the key and the cause.
func (e IndexError) Error() string {
	return fmt.Sprintf("store: index %q has no entry for %q: %v", e.Index, e.Key, e.Err)
}

// Unwrap returns the cause.
func (e IndexError) Unwrap() error { return e.Err }

// PanicError is a panic of an index function.
type PanicError struct {
	// Value is what it panicked with, Stack where.
	Value any
	Stack []byte
}

// Error shows the value; Stack has the rest.
func (e *PanicError) Error() string { return fmt.Sprintf("the index function panicked: %v", e.Value) }

func checkIndex[T any](name string, f IndexFunc[T]) error {
	switch {
	case name == "":
		return errNoName
	case f == nil:
		return fmt.Errorf("%w: index %q", errNilFunc, name)
	}
	return nil
}

// posting is one entry of an index. Postings are ordered by value, then by key.
type posting[T any] struct {
	value, key string
	object     T
}

func before[T any](a, b posting[T]) bool {
	if order := cmp.Compare(a.value, b.value); order != 0 {
		return order < 0
	}
	return a.key < b.key
}

// index is one index of a state.
type index[T any] struct {
	name     string
	of       IndexFunc[T]
	postings *btree.BTreeG[posting[T]]
}

func newIndex[T any](name string, f IndexFunc[T]) *index[T] {
	return &index[T]{name: name, of: f, postings: btree.NewBTreeGOptions(before[T], btree.Options{NoLocks: true})}
}

func (x *index[T]) copy() *index[T] {
	return &index[T]{name: x.name, of: x.of, postings: x.postings.Copy()}
}

// valuesOf asks an index function, and reports it when it fails.
func (s *Store[T]) valuesOf(x *index[T], key string, obj T) []string {
	values, err := call(x.of, obj)
	if err != nil {
		s.indexErrors.Add(1)
		s.onError(IndexError{Index: x.name, Key: key, Err: err})
		return nil
	}
	return values
}

// call makes an error of a panic: an index function is the user's code, and one
// object that it cannot bear must not end the writer.
func call[T any](f IndexFunc[T], obj T) (values []string, err error) {
	defer func() {
		if value := recover(); value != nil {
			values, err = nil, &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	return f(obj)
}

// change takes an object from the values it was under to those it is under now.
func (x *index[T]) change(key string, obj T, was, is []string) {
	for _, value := range was {
		if !slices.Contains(is, value) {
			x.postings.Delete(posting[T]{value: value, key: key})
		}
	}
	for _, value := range is {
		x.postings.Set(posting[T]{value, key, obj})
	}
}

// Index finds the objects of one [Snapshot] by the values of one index.
type Index[T any] struct{ index *index[T] }

// Lookup yields the objects under a value, with their keys, ascending by key.
func (x Index[T]) Lookup(value string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		x.index.postings.Ascend(posting[T]{value: value}, func(p posting[T]) bool {
			return p.value == value && yield(p.key, p.object)
		})
	}
}

// Values yields the values under which there is something, ascending.
func (x Index[T]) Values() iter.Seq[string] {
	return func(yield func(string) bool) {
		it := x.index.postings.Iter()
		defer it.Release()
		for ok := it.First(); ok; {
			value := it.Item().value
			if !yield(value) {
				return
			}
			// The next value is the first that is larger than value and any key.
			ok = it.Seek(posting[T]{value: value + "\x00"})
		}
	}
}

// Len returns how many objects are under a value, by counting them.
func (x Index[T]) Len(value string) int {
	n := 0
	for range x.Lookup(value) {
		n++
	}
	return n
}
