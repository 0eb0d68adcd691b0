package dedup

import "sync/atomic"

// A slotTable finds entries by their hashes. An entry is in one of the neighbouring slots
// that begin at its hash. Readers take no lock; writers hold the lock of the [Table].
type slotTable[E any, P entryOf[E]] struct {
	slots atomic.Pointer[[]slot[E]]
	most  int // slots
	used  int // slots with an entry
	swept int // index of the slot that was swept last
}

type slot[E any] struct {
	hash  atomic.Uint64
	entry atomic.Pointer[E]
}

// entryOf is implemented by the entries of a slotTable.
type entryOf[E any] interface {
	*E
	cost() int       // in bytes
	same(as *E) bool // reports whether both are entries for the same value
	dead() bool      // reports whether the value is no longer in memory
	// expired reports at a sweep whether to drop the entry; full reports whether the table is over
	// its budget.
	expired(full bool) bool
}

// Values of slots instead of a hash.
const (
	emptySlot = 0 // never used
	freeSlot  = 1 // used before
	firstHash = 2
)

// window is the number of slots in which an entry may be. It bounds every search, whatever
// the hashes are.
const window = 8

func (s *slotTable[E, P]) init(slots, most int) {
	all := make([]slot[E], slots)
	s.slots.Store(&all)
	s.most = most
}

// find returns the entry with this hash that match accepts, or nil.
func (s *slotTable[E, P]) find(h uint64, match func(e *E) bool) *E {
	slots := *s.slots.Load()
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		slot := &slots[(h+k)&mask]
		switch slot.hash.Load() {
		case emptySlot:
			return nil
		case h:
			if e := slot.entry.Load(); e != nil && match(e) {
				return e
			}
		}
	}
	return nil
}

// free returns the first slot for an entry that holds no other live one, nil if there is
// none in its window.
func (s *slotTable[E, P]) free(slots []slot[E], h uint64, e *E) *slot[E] {
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		slot := &slots[(h+k)&mask]
		old := P(slot.entry.Load())
		if old == nil || slot.hash.Load() == h && old.same(e) || old.dead() {
			return slot
		}
	}
	return nil
}

// put puts an entry into a free slot or, if there is none, into the last one of its window.
// It returns the cost of the entry that it replaced.
func (s *slotTable[E, P]) put(slots []slot[E], h uint64, e *E) (freed int) {
	slot := s.free(slots, h, e)
	if slot == nil {
		slot = &slots[(h+window-1)&uint64(len(slots)-1)]
	}
	if old := P(slot.entry.Load()); old != nil {
		freed = old.cost()
	} else {
		s.used++
	}
	slot.entry.Store(e)
	slot.hash.Store(h)
	return freed
}

// crowded reports whether the table should grow before an entry is put into it. It is not
// crowded because of a few entries with the same hash.
func (s *slotTable[E, P]) crowded(h uint64, e *E) bool {
	slots := *s.slots.Load()
	n := len(slots)
	return n < s.most && (s.used*2 >= n || s.used*8 >= n && s.free(slots, h, e) == nil)
}

// grow makes a table of twice the size, or of the same size if most entries are dead. It
// returns the cost of the entries that are gone, and the number of dead ones among them.
func (s *slotTable[E, P]) grow() (freed, dropped int) {
	old := *s.slots.Load()
	alive := 0
	for i := range old {
		if e := P(old[i].entry.Load()); e != nil && !e.dead() {
			alive++
		}
	}
	n := len(old)
	if alive*4 > n || alive == s.used {
		n *= 2
	}
	slots := make([]slot[E], n)
	s.used, s.swept = 0, 0
	for i := range old {
		switch e := P(old[i].entry.Load()); {
		case e == nil:
		case e.dead():
			freed += e.cost()
			dropped++
		default:
			freed += s.put(slots, old[i].hash.Load(), e)
		}
	}
	s.slots.Store(&slots)
	return freed, dropped
}

// sweep goes through n slots and drops the entries that have expired. It returns their cost
// and number, and whether it came to the end of the table.
func (s *slotTable[E, P]) sweep(n int, full bool) (freed, dropped int, wrapped bool) {
	slots := *s.slots.Load()
	for range min(n, len(slots)) {
		s.swept = (s.swept + 1) & (len(slots) - 1)
		wrapped = wrapped || s.swept == 0
		slot := &slots[s.swept]
		e := P(slot.entry.Load())
		if e == nil || !e.expired(full) {
			continue
		}
		slot.hash.Store(freeSlot)
		slot.entry.Store(nil)
		s.used--
		freed += e.cost()
		dropped++
	}
	return freed, dropped, wrapped
}
