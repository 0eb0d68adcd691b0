package store

import (
	"slices"
	"strings"
	"sync/atomic"
)

// state is one state of the store. Nothing in it changes once it is published,
// but for the table, which is shared with later states.
type state[T any] struct {
	number  uint64 // of the batch that made it, ascending
	version string
	objects tree[string, *record[T]] // by key
	indexes []index[T]               // by position: what place.index says
	table   *table[T]
}

// record is one state of one object.
type record[T any] struct {
	key    string
	hash   uint64 // of the key, as the table computes it
	object T
	number uint64     // of the batch that set it
	anchor *anchor[T] // nil when the object is in no index
}

func (r *record[T]) compare(key string) int { return strings.Compare(r.key, key) }

// anchor stands in the indexes for an object, for as long as its index values stay
// the same: a new record takes it over, and the indexes need not be touched.
type anchor[T any] struct {
	newest atomic.Pointer[record[T]] // never nil
	places []place                   // ordered, each once
}

func newAnchor[T any](r *record[T], places []place) *anchor[T] {
	a := &anchor[T]{places: places}
	a.newest.Store(r)
	return a
}

// find returns the record of the key in this state.
//
// The table and the anchors name the newest record that any batch has written, before
// that batch is published. Written up to batch n, by batches up to n alone, means
// written as this state has it; so the record's number decides whether it can be
// used. Likewise a key that is missing is missing in this state if nothing was
// removed after it. In all other cases the state's own tree says what holds.
func (s *state[T]) find(key string) (*record[T], bool) {
	r := s.table.find(s.table.hash(key), key)
	if r != nil && r.number <= s.number {
		return r, true
	}
	if r == nil && s.table.removed.Load() <= s.number {
		return nil, false
	}
	return s.objects.find(key)
}

// at returns the record that an anchor of this state's indexes stands for.
func (s *state[T]) at(a *anchor[T]) *record[T] {
	r := a.newest.Load()
	if r.number <= s.number {
		return r
	}
	r, _ = s.objects.find(r.key)
	return r
}

// position returns the position of the index of an id.
func (s *state[T]) position(id any) (position int, ok bool) {
	position = slices.IndexFunc(s.indexes, func(x index[T]) bool { return x.id == id })
	return position, position >= 0
}

// indexTexts returns the ids of the indexes as error messages show them, ascending.
func (s *state[T]) indexTexts() []string {
	texts := make([]string, 0, len(s.indexes))
	for _, x := range s.indexes {
		texts = append(texts, textOf(x.id))
	}
	slices.Sort(texts)
	return texts
}
