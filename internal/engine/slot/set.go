package slot

import (
	"fmt"
	"iter"
	"math/bits"
	"strings"
)

// Set is a set of slots. The zero value is empty. Sets can be compared with ==.
type Set [Entries / 64]uint64

// All returns the set of all slots.
func All() (s Set) {
	for i := range Count / 64 {
		s[i] = ^uint64(0)
	}
	return s
}

// Of returns the set of some slots.
func Of(slots ...int) (s Set) {
	for _, n := range slots {
		s.Add(n)
	}
	return s
}

// Has reports whether a slot is in the set.
func (s Set) Has(n int) bool { return s[n/64]>>(n%64)&1 != 0 }

// Add adds a slot.
func (s *Set) Add(n int) { s[n/64] |= 1 << (n % 64) }

// Remove removes a slot.
func (s *Set) Remove(n int) { s[n/64] &^= 1 << (n % 64) }

// Len returns the number of slots in the set.
func (s Set) Len() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// IsEmpty reports whether the set has no slot.
func (s Set) IsEmpty() bool { return s == Set{} }

// Union returns the slots of either set.
func (s Set) Union(o Set) Set {
	for i := range s {
		s[i] |= o[i]
	}
	return s
}

// Minus returns the slots that are not in the other set.
func (s Set) Minus(o Set) Set {
	for i := range s {
		s[i] &^= o[i]
	}
	return s
}

// And returns the slots that are in both sets.
func (s Set) And(o Set) Set {
	for i := range s {
		s[i] &= o[i]
	}
	return s
}

// Slots yields the slots in order.
func (s Set) Slots() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := range Entries {
			if s.Has(n) && !yield(n) {
				return
			}
		}
	}
}

// String returns the slots with ranges, as in "0-3,7".
func (s Set) String() string {
	var parts []string
	for first, last := range s.runs() {
		if first == last {
			parts = append(parts, fmt.Sprint(first))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", first, last))
		}
	}
	return strings.Join(parts, ",")
}

// runs yields the first and the last slot of each run of adjacent ones.
func (s Set) runs() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for first := 0; first < Entries; first++ {
			last := first
			for last < Entries && s.Has(last) {
				last++
			}
			if last > first && !yield(first, last-1) {
				return
			}
			first = last
		}
	}
}

// UIDSelector returns the shard selector of the objects whose UID is in the set. As no selector
// selects nothing, that of the empty set selects one of all hashes.
func (s Set) UIDSelector() string {
	if s.IsEmpty() {
		return shardRange(0, 1)
	}
	var parts []string
	for first, last := range s.runs() {
		parts = append(parts, shardRange(uint64(first)<<56, uint64(last+1)<<56))
	}
	return strings.Join(parts, " || ")
}

// shardRange returns the shard selector of the UIDs whose hashes are from begin up to end, which is
// 0 for the end of all.
func shardRange(begin, end uint64) string {
	carry := ""
	if end == 0 {
		carry = "1"
	}
	return fmt.Sprintf("shardRange(object.metadata.uid, '0x%016x', '0x%s%016x')", begin, carry, end)
}
