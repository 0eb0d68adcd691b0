package dedup

import "sync/atomic"

// sightings remembers which hashes were seen, and in which object first, approximately: it
// forgets, and it takes one hash in some millions for another. It decides only what is worth
// keeping.
type sightings struct {
	// marks have 24 bits of a hash, of which one is always set, above an owner.
	marks atomic.Pointer[[]atomic.Uint32]
}

const (
	leastSightings = 1 << 12
	mostSightings  = 1 << 18
	// sightingsPerSlot is the number of marks per slot of the tables.
	sightingsPerSlot = 4
)

// resize makes room for that many hashes, a power of two, and forgets all.
func (s *sightings) resize(n int) {
	marks := make([]atomic.Uint32, n)
	s.marks.Store(&marks)
}

// grow makes room for what tables of that many slots see.
func (s *sightings) grow(slots int) {
	if n := min(slots*sightingsPerSlot, mostSightings); n > len(*s.marks.Load()) {
		s.resize(n)
	}
}

// ways is the number of marks among which a hash is looked for, the latest first.
// With one, two hashes that come in turns would push each other out for ever.
const ways = 4

// again reports whether the hash was seen before in an object of another owner: what one
// object has in all its states is no repetition. If own is set, the same owner counts, too.
// The mark has the first owner in both cases, because own may be another in the next call.
func (s *sightings) again(h uint64, by owner, own bool) bool {
	marks := *s.marks.Load()
	i := h >> 20 & uint64(len(marks)-1) &^ (ways - 1)
	set := marks[i : i+ways : i+ways]
	mark := (uint32(h>>40)|1)<<8 | uint32(by)
	for k := range set {
		if seen := set[k].Load(); seen>>8 == mark>>8 {
			return seen != mark || own || by == anyone
		}
	}
	for k := ways - 1; k > 0; k-- {
		set[k].Store(set[k-1].Load())
	}
	set[0].Store(mark)
	return false
}
