package store

import (
	"hash/maphash"
	"sync/atomic"
)

// hashTable finds the newest item of a key by hash. It is shared by all states since
// it was made and changed in place, so it may be newer than a state; the numbers in it tell
// a reader when it is (see state.find).
//
// It is an open-addressed hash table with linear probing, at most two thirds full.
// One writer at a time changes it, under the store's lock; readers need none, each
// slot being atomic. A deleted item's place is filled with a later one of the same
// run, so there are no leftovers of deletes; a reader can miss an item that is being
// moved, which removed tells it.
type hashTable[T any] struct {
	seed    maphash.Seed
	slots   []atomic.Pointer[item[T]] // a power of two
	used    int                       // items in it; the writer's
	removed atomic.Uint64             // the last batch that removed or moved an item; set first
}

// minSlots is the size of the smallest hash table.
const minSlots = 8

func newHashTable[T any](seed maphash.Seed, n int) *hashTable[T] {
	slots := minSlots
	for full(n, slots) {
		slots *= 2
	}
	return &hashTable[T]{seed: seed, slots: make([]atomic.Pointer[item[T]], slots)}
}

// full reports whether n items are too many for a number of slots.
func full(n, slots int) bool { return 3*n > 2*slots }

func (t *hashTable[T]) hash(key string) uint64 { return maphash.String(t.seed, key) }

// find returns the newest item of the key that the hash table has, which may be newer
// than the reader's state, or nil.
func (t *hashTable[T]) find(hash uint64, key string) *item[T] {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		r := t.slots[i].Load()
		if r == nil || r.hash == hash && r.key == key {
			return r
		}
	}
}

// sized returns a hash table with room for n items: t, or a copy that is larger, or
// smaller where most of t would be empty. A hash table that has been replaced is not
// changed again.
func (t *hashTable[T]) sized(n int, number uint64) *hashTable[T] {
	const sparse = 8
	if !full(n, len(t.slots)) && (n > len(t.slots)/sparse || len(t.slots) == minSlots) {
		return t
	}
	// A quarter of air, so that a hash table which shrinks or grows does not soon do so again.
	c := newHashTable[T](t.seed, n+n/4)
	c.removed.Store(number)
	for i := range t.slots {
		if r := t.slots[i].Load(); r != nil {
			c.put(r)
		}
	}
	return c
}

// put enters the newest item of a key.
func (t *hashTable[T]) put(r *item[T]) {
	mask := uint64(len(t.slots) - 1)
	for i := r.hash & mask; ; i = (i + 1) & mask {
		switch present := t.slots[i].Load(); {
		case present == nil:
			t.used++
			t.slots[i].Store(r)
			return
		case present.hash == r.hash && present.key == r.key:
			t.slots[i].Store(r)
			return
		}
	}
}

// remove takes out the item of a key, if there is one. The caller has set removed.
func (t *hashTable[T]) remove(hash uint64, key string) {
	mask := uint64(len(t.slots) - 1)
	hole := hash & mask
	for ; ; hole = (hole + 1) & mask {
		r := t.slots[hole].Load()
		if r == nil {
			return
		}
		if r.hash == hash && r.key == key {
			break
		}
	}
	t.used--
	for i := (hole + 1) & mask; ; i = (i + 1) & mask {
		r := t.slots[i].Load()
		if r == nil {
			t.slots[hole].Store(nil)
			return
		}
		// r may move to the hole unless it is nearer to its home than the hole is.
		if (i-r.hash)&mask >= (i-hole)&mask {
			t.slots[hole].Store(r)
			hole = i
		}
	}
}
