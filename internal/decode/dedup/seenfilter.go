package dedup

import "sync/atomic"

// A seenFilter remembers which hashes were seen, and in which object first, approximately:
// it forgets, and takes one hash in some millions for another. It decides only which values are
// worth keeping.
type seenFilter struct {
	// marks have 24 bits of a hash, of which one is always set, above an objectTag.
	marks atomic.Pointer[[]atomic.Uint32]
}

const (
	leastMarks, mostMarks = 1 << 12, 1 << 18
	marksPerSlot          = 4 // per slot of the tables
	// markWindow is the number of marks among which a hash is looked for, the latest first.
	// With one, two hashes in turns would push each other out forever.
	markWindow = 4
)

// resize makes room for n hashes, a power of two, and forgets all.
func (s *seenFilter) resize(n int) {
	marks := make([]atomic.Uint32, n)
	s.marks.Store(&marks)
}

// grow makes room for the hashes of tables of that many slots.
func (s *seenFilter) grow(slots int) {
	if n := min(slots*marksPerSlot, mostMarks); n > len(*s.marks.Load()) {
		s.resize(n)
	}
}

// mark marks a hash as seen. It reports whether the hash was seen before, in another object
// or, if sameObject is set, in any. The mark has the first object in both cases, because the
// next call may have another sameObject.
func (s *seenFilter) mark(h uint64, object objectTag, sameObject bool) bool {
	marks := *s.marks.Load()
	i := h >> 20 & uint64(len(marks)-1) &^ (markWindow - 1)
	set := marks[i : i+markWindow : i+markWindow]
	mark := (uint32(h>>40)|1)<<8 | uint32(object)
	for k := range set {
		if seen := set[k].Load(); seen>>8 == mark>>8 {
			return seen != mark || sameObject || object == noTag
		}
	}
	for k := markWindow - 1; k > 0; k-- {
		set[k].Store(set[k-1].Load())
	}
	set[0].Store(mark)
	return false
}
