package store

import (
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
)

// Options configure a [Store]. The zero value is a store without indexes.
type Options[T any] struct {
	// Indexes are the index functions by id, see [Store.AddIndex], which adds more.
	Indexes map[any]IndexFunc[T]
	// OnIndexError is called for every object that an index function failed for, after
	// the state without the entry is published. It is called on the goroutine
	// that wrote, without a lock, so that it may use the store; with several writers
	// it may be called by several at once. nil: failures are counted only, see
	// [Store.IndexErrors].
	OnIndexError func(IndexError)
}

// Store is a collection of objects by key, read through immutable snapshots. Make it
// with [New]; it must not be copied. All methods may be called from any goroutine.
type Store[T any] struct {
	onIndexError func(IndexError)
	indexErrors  atomic.Uint64
	published    atomic.Pointer[state[T]]

	// writeMu is a lock: it holds a value from the moment that the one writer takes the
	// published state until it has published the next. It guards the fields of the hash table that
	// are the writer's, and the scratch space below. Index functions run under it: it is a
	// channel for bubbles of testing/synctest, which do not see that a mutex is waited for.
	writeMu chan struct{}
	changes []change[T]
	places  []place
}

// New returns an empty store. An index without an id or a function is an error.
func New[T any](o Options[T]) (*Store[T], error) {
	s := &Store[T]{onIndexError: o.OnIndexError, writeMu: make(chan struct{}, 1)}
	first := &state[T]{byKey: newHashTable[T](maphash.MakeSeed(), 0)}
	byText := func(a, b any) int { return strings.Compare(textOf(a), textOf(b)) }
	for _, id := range slices.SortedFunc(maps.Keys(o.Indexes), byText) {
		x := index[T]{id: id, function: o.Indexes[id]}
		if err := x.check(); err != nil {
			return nil, err
		}
		first.indexes = append(first.indexes, x)
	}
	s.published.Store(first)
	return s, nil
}

// Get returns the newest object of the key. It takes no lock and does not wait for
// a writer.
func (s *Store[T]) Get(key string) (object T, ok bool) { return s.Snapshot().Get(key) }

// Len returns the number of objects in the newest state.
func (s *Store[T]) Len() int { return s.Snapshot().Len() }

// Snapshot returns the newest state, in O(1). Queries that belong together are asked
// of one snapshot.
func (s *Store[T]) Snapshot() Snapshot[T] { return Snapshot[T]{s.published.Load()} }

// IndexErrors counts how often an index function has failed for an object, since the
// store was made.
func (s *Store[T]) IndexErrors() uint64 { return s.indexErrors.Load() }

// Update calls fn with a batch and publishes its changes as one state, so that a reader
// sees all of them or none. Every read that begins after Update has returned sees the
// change, in all indexes. If fn panics, nothing is published and the panic goes on.
//
// Updates run one after another; fn must not call Update, Replace or AddIndex of the
// same store. It may read the store, which then shows the state before.
func (s *Store[T]) Update(fn func(b *Batch[T])) {
	s.report(s.write(fn))
}

// Replace makes the items the whole content of the store, with the given version, as
// one batch: readers see the old state until they see the new one. Of several items
// with one key the last holds. Items in ascending order of keys are the fastest and
// the smallest. The writers' lock is held while items is ranged over: the
// rules of [Store.Update] for fn hold for it.
func (s *Store[T]) Replace(version string, items iter.Seq2[string, T]) {
	s.report(s.write(func(b *Batch[T]) {
		b.clear()
		for key, object := range items {
			b.Set(key, object)
		}
		b.SetVersion(version)
	}))
}

// AddIndex adds an index. Its id is a name, or any other value that can be compared with ==:
// not nil and not "". Objects that the store holds are in the index when AddIndex
// returns; that costs as much as setting each of them. Snapshots taken before do not
// have the index. Errors: [ErrIndexExists], [ErrIndexName], [ErrIndexFunc]. An
// object that the function fails for is no error here, see [IndexError].
func (s *Store[T]) AddIndex(id any, function IndexFunc[T]) error {
	added := index[T]{id: id, function: function}
	if err := added.check(); err != nil {
		return err
	}
	var err error
	s.report(s.write(func(b *Batch[T]) {
		if _, exists := b.next.position(id); exists {
			err = fmt.Errorf("%w: there are %v; share it or choose another name",
				indexError(id, ErrIndexExists), b.next.indexTexts())
			return
		}
		b.addIndex(added)
	}))
	return err
}

// write runs fn with a batch and publishes its changes. It returns the failures of
// index functions.
func (s *Store[T]) write(fn func(*Batch[T])) []IndexError {
	s.writeMu <- struct{}{}
	defer func() { <-s.writeMu }()
	before := s.published.Load()
	b := newBatch(before, s.changes, s.places)
	s.changes, s.places = nil, nil // a batch that panics keeps them
	defer func() { b.open = false }()
	fn(b)
	if b.changed(before) {
		s.published.Store(b.commit())
	}
	s.changes, s.places = recycle(b.changes), recycle(b.places)
	return b.failed
}

// report counts failed index functions and calls OnIndexError. The writers' lock is not held.
func (s *Store[T]) report(failed []IndexError) {
	s.indexErrors.Add(uint64(len(failed)))
	if s.onIndexError == nil {
		return
	}
	for _, err := range failed {
		s.onIndexError(err)
	}
}

// recycle empties a list for the next batch. A long one is given to the collector
// instead: it was a relist's.
func recycle[X any](list []X) []X {
	const keep = 4096
	if cap(list) > keep {
		return nil
	}
	clear(list)
	return list[:0]
}
