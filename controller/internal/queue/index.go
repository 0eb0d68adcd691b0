package queue

import "hash/maphash"

// index finds entries by their keys: a hash table of their numbers, with linear probing. It
// takes 6 to 11 bytes per key, where a map from keys to numbers takes some 40.
type index struct {
	entries *slab[entry]
	seed    maphash.Seed
	slots   []uint32 // the number of an entry + 1; 0 is free
	used    int
}

const minSlots = 16

func newIndex(entries *slab[entry]) index {
	return index{entries: entries, seed: maphash.MakeSeed(), slots: make([]uint32, minSlots)}
}

func (x *index) hash(key string) uint32 { return uint32(maphash.String(x.seed, key)) }

// get returns the entry of a key, and the hash of the key.
func (x *index) get(key string) (i uint32, hash uint32, ok bool) {
	hash = x.hash(key)
	mask := uint32(len(x.slots) - 1)
	for at := hash & mask; x.slots[at] != 0; at = (at + 1) & mask {
		if e := x.entries.at(x.slots[at] - 1); e.hash == hash && e.key == key {
			return x.slots[at] - 1, hash, true
		}
	}
	return nobody, hash, false
}

// add adds an entry, whose key is not in the index.
func (x *index) add(i uint32) {
	if x.used++; x.used*3 > len(x.slots)*2 {
		x.resize(2 * len(x.slots))
	}
	x.put(i)
}

func (x *index) put(i uint32) {
	mask := uint32(len(x.slots) - 1)
	at := x.entries.at(i).hash & mask
	for x.slots[at] != 0 {
		at = (at + 1) & mask
	}
	x.slots[at] = i + 1
}

// remove removes an entry. The entries that it has displaced move up.
func (x *index) remove(i uint32) {
	mask := uint32(len(x.slots) - 1)
	hole := x.entries.at(i).hash & mask
	for x.slots[hole] != i+1 {
		hole = (hole + 1) & mask
	}
	for at := (hole + 1) & mask; x.slots[at] != 0; at = (at + 1) & mask {
		home := x.entries.at(x.slots[at]-1).hash & mask
		if (at-home)&mask >= (at-hole)&mask {
			x.slots[hole] = x.slots[at]
			hole = at
		}
	}
	x.slots[hole] = 0
	if x.used--; x.used*8 < len(x.slots) && len(x.slots) > minSlots {
		x.resize(len(x.slots) / 2)
	}
}

// resize changes the number of slots.
func (x *index) resize(n int) {
	old := x.slots
	x.slots = make([]uint32, n)
	for _, slot := range old {
		if slot != 0 {
			x.put(slot - 1)
		}
	}
}
