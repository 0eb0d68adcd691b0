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

// UIDSelector returns the shard selector of the objects whose UID is in the set; "" for the empty
// set, which no selector selects.
func (s Set) UIDSelector() string {
	var parts []string
	for first, last := range s.runs() {
		end := fmt.Sprintf("0x%016x", uint64(last+1)<<56)
		if last == Count-1 {
			end = "0x1" + strings.Repeat("0", 16)
		}
		parts = append(parts, shardRange(UID, fmt.Sprintf("0x%016x", uint64(first)<<56), end))
	}
	return strings.Join(parts, " || ")
}

// maxSelector bounds the bytes of a selector of namespaces, which is a part of the URL.
const maxSelector = 4 << 10

// NamespaceSelector returns the shard selector of the objects in some namespaces, and reports
// whether there is one: not for none, and not for so many that it were longer than 4 KB.
func NamespaceSelector(namespaces iter.Seq[string]) (selector string, ok bool) {
	var b strings.Builder
	for namespace := range namespaces {
		if b.Len() > 0 {
			b.WriteString(" || ")
		}
		h := hash(namespace)
		end := fmt.Sprintf("0x%016x", h+1)
		if h+1 == 0 {
			end = "0x1" + strings.Repeat("0", 16)
		}
		b.WriteString(shardRange(Namespace, fmt.Sprintf("0x%016x", h), end))
		if b.Len() > maxSelector {
			return "", false
		}
	}
	return b.String(), b.Len() > 0
}

func shardRange(k Key, begin, end string) string {
	return fmt.Sprintf("shardRange(object.metadata.%s, '%s', '%s')", k, begin, end)
}
