package store

import (
	"iter"
	"strings"
)

// Snapshot is one state of a [Store]. It stays as it is however long it is held, and
// never blocks a writer. It is a small value: copy it freely, use it from several
// goroutines. Holding one keeps the objects of that state in memory.
//
// The zero Snapshot is empty.
type Snapshot[T any] struct {
	state *state[T]
}

// Get returns the object of the key.
func (s Snapshot[T]) Get(key string) (object T, ok bool) {
	if s.state == nil {
		return object, false
	}
	r, ok := s.state.find(key)
	if !ok {
		return object, false
	}
	return r.object, true
}

// Len returns the number of objects.
func (s Snapshot[T]) Len() int {
	if s.state == nil {
		return 0
	}
	return s.state.objects.len()
}

// Version returns the version that the last writer set for this state.
func (s Snapshot[T]) Version() string {
	if s.state == nil {
		return ""
	}
	return s.state.version
}

// All yields every object with its key, ascending by key. Nothing is copied. The
// sequence can be ranged over any number of times.
func (s Snapshot[T]) All() iter.Seq2[string, T] { return s.Prefix("") }

// Cursor returns a cursor before the first object. It costs less to leave than the
// coroutine of iter.Pull2 over All.
func (s Snapshot[T]) Cursor() *Cursor[T] {
	if s.state == nil {
		return new(Cursor[T])
	}
	return &Cursor[T]{objects: s.state.objects}
}

// Prefix yields the objects whose keys begin with the prefix, ascending by key. For
// the objects of namespace a under keys "namespace/name", ask for "a/": "a" alone
// also yields those of namespace a-b. Nothing is copied. The sequence can be
// ranged over any number of times.
func (s Snapshot[T]) Prefix(prefix string) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		if s.state == nil {
			return
		}
		s.state.objects.from(prefix, func(r *item[T]) bool {
			return strings.HasPrefix(r.key, prefix) && yield(r.key, r.object)
		})
	}
}

// At returns the object at a position, from 0 to Len-1 in the order of keys. It costs a search.
func (s Snapshot[T]) At(position int) (key string, object T) {
	r := s.state.objects.at(position)
	return r.key, r.object
}

// PrefixLen counts the objects whose keys begin with the prefix, without visiting them.
func (s Snapshot[T]) PrefixLen(prefix string) int {
	if s.state == nil {
		return 0
	}
	end := len(prefix)
	for end > 0 && prefix[end-1] == 0xff {
		end--
	}
	count := s.state.objects.len() - s.state.objects.rank(prefix)
	if end > 0 {
		after := []byte(prefix[:end])
		after[end-1]++
		count -= s.state.objects.len() - s.state.objects.rank(string(after))
	}
	return count
}

// Indexes returns the ids of the indexes, in the order in which they were added.
func (s Snapshot[T]) Indexes() []any {
	if s.state == nil {
		return nil
	}
	ids := make([]any, len(s.state.indexes))
	for i, x := range s.state.indexes {
		ids[i] = x.id
	}
	return ids
}

// Index returns the index of an id; ok is false if it was not added.
func (s Snapshot[T]) Index(id any) (x Index[T], ok bool) {
	if s.state == nil {
		return Index[T]{}, false
	}
	i, ok := s.state.position(id)
	if !ok {
		return Index[T]{}, false
	}
	return Index[T]{state: s.state, entries: s.state.indexes[i].entries}, true
}
