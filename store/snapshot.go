package store

import (
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Snapshot is a state of a [Store]. It stays as it is, however long it is held,
// and may be read from any goroutine. Iterations may be repeated.
type Snapshot[T any] struct{ state *state[T] }

// Get returns the object of a key.
func (s Snapshot[T]) Get(key string) (T, bool) { return s.state.get(key) }

// Len returns the number of objects.
func (s Snapshot[T]) Len() int { return s.state.objects.Len() }

// Version returns the version of the state, as the batch that made it set it.
func (s Snapshot[T]) Version() string { return s.state.version }

// All yields every object with its key, ascending by key.
func (s Snapshot[T]) All() iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.state.objects.Scan(func(key string, e entry[T]) bool { return yield(key, e.object) })
	}
}

// Prefix yields the objects whose keys begin with prefix, ascending by key.
func (s Snapshot[T]) Prefix(prefix string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		s.state.objects.Ascend(prefix, func(key string, e entry[T]) bool {
			return strings.HasPrefix(key, prefix) && yield(key, e.object)
		})
	}
}

// Index returns an index of the snapshot. A name that is not known is
// [ErrNoIndex], with the names that are.
func (s Snapshot[T]) Index(name string) (Index[T], error) {
	x, ok := s.state.index(name)
	if !ok {
		return Index[T]{}, fmt.Errorf("%w: %q; there are %q", ErrNoIndex, name, s.IndexNames())
	}
	return Index[T]{x}, nil
}

// IndexNames returns the names of the indexes, sorted.
func (s Snapshot[T]) IndexNames() []string {
	names := make([]string, len(s.state.indexes))
	for i, x := range s.state.indexes {
		names[i] = x.name
	}
	slices.Sort(names)
	return names
}

func (s *state[T]) index(name string) (*index[T], bool) {
	for _, x := range s.indexes {
		if x.name == name {
			return x, true
		}
	}
	return nil, false
}
