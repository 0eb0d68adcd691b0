package store

import (
	"slices"
	"strings"
	"sync/atomic"
)

// state is one state of the store. Nothing in it changes once it is published,
// but for the hash table, which is shared with later states.
type state[T any] struct {
	number  uint64 // of the batch that made it, ascending
	version string
	objects tree[string, *item[T]] // by key
	indexes []index[T]             // by position, see place.index
	byKey   *hashTable[T]
}

// item is one state of one object.
type item[T any] struct {
	key    string
	hash   uint64 // of the key, as the hash table computes it
	object T
	number uint64     // of the batch that set it
	anchor *anchor[T] // nil when the object is in no index
}

func (r *item[T]) compare(key string) int { return strings.Compare(r.key, key) }

// anchor represents an object in the indexes as long as its index values stay the same: a
// new item takes it over, and the indexes need no write.
type anchor[T any] struct {
	newest atomic.Pointer[item[T]] // never nil
	places []place                 // ordered, each once
}

func newAnchor[T any](r *item[T], places []place) *anchor[T] {
	a := &anchor[T]{places: places}
	a.newest.Store(r)
	return a
}

// find returns the item of the key in this state.
//
// The hash table and the anchors name the newest item that any batch has written, before
// that batch is published. Written up to batch n, by batches up to n alone, means
// written as this state has it; so the item's number decides whether it can be
// used. Likewise a key that is missing is missing in this state if nothing was
// removed after it. In all other cases the state's own tree decides.
func (s *state[T]) find(key string) (*item[T], bool) {
	r := s.byKey.find(s.byKey.hash(key), key)
	if r != nil && r.number <= s.number {
		return r, true
	}
	if r == nil && s.byKey.removed.Load() <= s.number {
		return nil, false
	}
	return s.objects.find(key)
}

// at returns the item that an anchor of this state's indexes stands for.
func (s *state[T]) at(a *anchor[T]) *item[T] {
	r := a.newest.Load()
	if r.number <= s.number {
		return r
	}
	r, _ = s.objects.find(r.key)
	return r
}

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
