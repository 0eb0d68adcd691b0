package store

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// Options are the choices of a [Store]. The zero value is ready.
type Options[T any] struct {
	// Indexes are the index functions by name; AddIndex adds more.
	Indexes map[string]IndexFunc[T]
	// OnIndexError is told of each entry that is missing because an index
	// function failed, on the writer's goroutine. nil leaves it at the count.
	OnIndexError func(IndexError)
}

// Store is an indexed collection. Get, Len, Snapshot and IndexErrors may be called
// from any goroutine and never wait; Update, Replace and AddIndex may be called
// from any goroutine and wait for each other.
type Store[T any] struct {
	published atomic.Pointer[state[T]]

	writing     sync.Mutex // held by who makes the next state
	onError     func(IndexError)
	indexErrors atomic.Uint64
}

// state is what a store holds at one moment. It is immutable once published.
type state[T any] struct {
	objects btree.Map[string, entry[T]]
	indexes []*index[T]
	version string
}

// entry is an object with the values under which the indexes have it, by the
// position of the index. They are kept so that an index function need not answer
// the same about an object twice.
type entry[T any] struct {
	object T
	values *[][]string // nil when there are no indexes
}

// New returns an empty store. It returns an error that names the index whose name
// is empty or whose function is nil.
func New[T any](o Options[T]) (*Store[T], error) {
	s := &Store[T]{onError: o.OnIndexError}
	if s.onError == nil {
		s.onError = func(IndexError) {}
	}
	empty := &state[T]{}
	for _, name := range slices.Sorted(maps.Keys(o.Indexes)) {
		if err := checkIndex(name, o.Indexes[name]); err != nil {
			return nil, err
		}
		empty.indexes = append(empty.indexes, newIndex(name, o.Indexes[name]))
	}
	s.published.Store(empty)
	return s, nil
}

// Get returns the object of a key in the present state.
func (s *Store[T]) Get(key string) (T, bool) { return s.published.Load().get(key) }

func (s *state[T]) get(key string) (T, bool) {
	e, ok := s.objects.Get(key)
	return e.object, ok
}

// Len returns the number of objects in the present state.
func (s *Store[T]) Len() int { return s.published.Load().objects.Len() }

// Snapshot returns the present state, in O(1).
func (s *Store[T]) Snapshot() Snapshot[T] { return Snapshot[T]{s.published.Load()} }

// IndexErrors returns how many times an index function has failed.
func (s *Store[T]) IndexErrors() uint64 { return s.indexErrors.Load() }

// Update makes the next state: f changes a [Batch], and all its changes are
// published as one when it returns. If f panics, none is.
func (s *Store[T]) Update(f func(*Batch[T])) {
	s.writing.Lock()
	defer s.writing.Unlock()
	next := s.published.Load().copy()
	b := &Batch[T]{store: s, next: next}
	f(b)
	b.next = nil // a batch that outlives its function must not write to what is published
	s.published.Store(next)
}

// copy returns a state that can be written to without changing s.
func (s *state[T]) copy() *state[T] {
	next := &state[T]{objects: *s.objects.Copy(), indexes: make([]*index[T], len(s.indexes)), version: s.version}
	for i, x := range s.indexes {
		next.indexes[i] = x.copy()
	}
	return next
}

// Replace makes a state of the given objects and version, and nothing else.
func (s *Store[T]) Replace(version string, objects iter.Seq2[string, T]) {
	s.Update(func(b *Batch[T]) {
		b.next.objects.Clear()
		for i, x := range b.next.indexes {
			b.next.indexes[i] = newIndex(x.name, x.of)
		}
		for key, obj := range objects {
			b.Set(key, obj)
		}
		b.SetVersion(version)
	})
}

// AddIndex adds an index over the objects there are and will be. A name that is
// taken is [ErrIndexExists].
func (s *Store[T]) AddIndex(name string, f IndexFunc[T]) error {
	if err := checkIndex(name, f); err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	before := s.published.Load()
	if _, taken := before.index(name); taken {
		return fmt.Errorf("%w: %q", ErrIndexExists, name)
	}
	next := before.copy()
	added := newIndex(name, f)
	next.indexes = append(next.indexes, added)
	before.objects.Scan(func(key string, e entry[T]) bool {
		values := s.valuesOf(added, key, e.object)
		added.change(key, e.object, nil, values)
		all := [][]string{values}
		if e.values != nil {
			all = append(slices.Clone(*e.values), values)
		}
		next.objects.Set(key, entry[T]{e.object, &all})
		return true
	})
	s.published.Store(next)
	return nil
}

// Batch is a set of changes that become visible together. It is valid within the
// function that Update calls, on its goroutine.
type Batch[T any] struct {
	store *Store[T]
	next  *state[T]
}

// Get returns the object of a key, as the batch has it so far.
func (b *Batch[T]) Get(key string) (T, bool) { return b.next.get(key) }

// Len returns the number of objects, as the batch has them so far.
func (b *Batch[T]) Len() int { return b.next.objects.Len() }

// Set puts an object under a key and returns the one that was there.
func (b *Batch[T]) Set(key string, obj T) (previous T, existed bool) {
	if len(b.next.indexes) == 0 {
		e, existed := b.next.objects.Set(key, entry[T]{object: obj})
		return e.object, existed
	}
	values := make([][]string, len(b.next.indexes))
	for i, x := range b.next.indexes {
		values[i] = b.store.valuesOf(x, key, obj)
	}
	before, existed := b.next.objects.Set(key, entry[T]{obj, &values})
	for i, x := range b.next.indexes {
		x.change(key, obj, before.under(i), values[i])
	}
	return before.object, existed
}

// Delete removes the object of a key and returns it.
func (b *Batch[T]) Delete(key string) (previous T, existed bool) {
	before, existed := b.next.objects.Delete(key)
	for i, x := range b.next.indexes {
		x.change(key, before.object, before.under(i), nil)
	}
	return before.object, existed
}

// under returns the values that an index has the entry under.
func (e entry[T]) under(index int) []string {
	if e.values == nil {
		return nil
	}
	return (*e.values)[index]
}

// SetVersion sets the version of the state that the batch makes.
func (b *Batch[T]) SetVersion(version string) { b.next.version = version }
