package queue

import "hash/maphash"

// index finds entries by their keys: a hash table of their numbers, with linear probing. It
// takes 10 to 20 bytes per key, where a map from keys to numbers takes some 40, and looks at an
// entry only if the hash is that of the key.
type index struct {
	entries *slab[entry]
	seed    maphash.Seed
	slots   []slot
	used    int
}

// slot is the hash of a key, and the number of its entry + 1. A slot with entry 0 is free.
type slot struct{ hash, entry uint32 }

const minSlots = 16

func newIndex(entries *slab[entry]) index {
	return index{entries: entries, seed: maphash.MakeSeed(), slots: make([]slot, minSlots)}
}

// find returns the place of a key, or the place where it would be.
func (x *index) find(key string) (at, hash uint32) {
	hash = uint32(maphash.String(x.seed, key))
	mask := uint32(len(x.slots) - 1)
	for at = hash & mask; x.slots[at].entry != 0; at = (at + 1) & mask {
		if s := x.slots[at]; s.hash == hash && x.entries.at(s.entry-1).key == key {
			break
		}
	}
	return at, hash
}

func (x *index) get(key string) (uint32, bool) {
	at, _ := x.find(key)
	i := x.slots[at].entry
	return i - 1, i != 0
}

// obtain returns the entry of a key. It makes one for a new key.
func (x *index) obtain(key string) (i uint32, isNew bool) {
	at, hash := x.find(key)
	if i := x.slots[at].entry; i != 0 {
		return i - 1, false
	}
	i = x.entries.obtain()
	x.entries.at(i).key = key
	x.slots[at] = slot{hash, i + 1}
	if x.used++; x.used*5 > len(x.slots)*4 {
		x.resize(2 * len(x.slots))
	}
	return i, true
}

// release removes an entry. The slots that it has displaced move up.
func (x *index) release(i uint32) {
	hole, _ := x.find(x.entries.at(i).key)
	mask := uint32(len(x.slots) - 1)
	for at := (hole + 1) & mask; x.slots[at].entry != 0; at = (at + 1) & mask {
		if home := x.slots[at].hash & mask; (at-home)&mask >= (at-hole)&mask {
			x.slots[hole] = x.slots[at]
			hole = at
		}
	}
	x.slots[hole] = slot{}
	x.entries.release(i)
	if x.used--; x.used*8 < len(x.slots) && len(x.slots) > minSlots {
		x.resize(len(x.slots) / 2)
	}
}

func (x *index) resize(n int) {
	old := x.slots
	x.slots = make([]slot, n)
	mask := uint32(n - 1)
	for _, s := range old {
		if s.entry == 0 {
			continue
		}
		at := s.hash & mask
		for x.slots[at].entry != 0 {
			at = (at + 1) & mask
		}
		x.slots[at] = s
	}
}
