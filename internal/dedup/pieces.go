package dedup

import (
	"sync/atomic"
	"unsafe"
	"weak"
)

// pieces finds messages, slices and maps by the bytes that they were decoded from.
// Readers take no lock.
type pieces struct {
	slots atomic.Pointer[[]pieceSlot]
	used  int // slots with an item; guarded by the table's lock, as hand is
	hand  int // where the next sweep begins
}

type pieceSlot struct {
	hash atomic.Uint64
	item atomic.Pointer[item]
}

// An item is a value that may be shared. It does not change.
type item struct {
	hash  uint64
	shape *shape
	key   string             // the bytes the value was decoded from
	at    weak.Pointer[byte] // the value, which the table does not keep alive
	n     int32              // elements of a slice
	size  int32              // bytes of memory that sharing the value saves
	by    owner              // who made it
}

const (
	leastPieceSlots = 1 << 8
	mostPieceSlots  = 1 << 20

	// costItem is what an item takes beside its key: itself, its share of the
	// slots, the runtime's record of the weak pointer.
	costItem = 160
)

// A value is what lies behind the pointer in a field: a message, the n elements
// of a slice, a map.
type value struct {
	at unsafe.Pointer
	n  int
}

// value returns the item's value if it is still in use.
func (it *item) value() (value, bool) {
	p := it.at.Value()
	return value{unsafe.Pointer(p), int(it.n)}, p != nil
}

func (it *item) same(as *item) bool {
	return it.hash == as.hash && it.shape == as.shape && it.key == as.key
}

func (it *item) cost() int { return costItem + len(it.key) }

func (p *pieces) start() {
	slots := make([]pieceSlot, leastPieceSlots)
	p.slots.Store(&slots)
}

// find returns the item of the value that has this key as a value of this shape,
// and the value.
func (p *pieces) find(h uint64, s *shape, key []byte) (*item, value, bool) {
	slots := *p.slots.Load()
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		slot := &slots[(h+k)&mask]
		have := slot.hash.Load()
		if have == emptySlot {
			break
		}
		if have != h {
			continue
		}
		it := slot.item.Load()
		if it == nil || it.hash != h || it.shape != s || it.key != string(key) {
			continue
		}
		if v, ok := it.value(); ok {
			return it, v, true
		}
	}
	return nil, value{}, false
}

// keepPiece puts a value into the table, if there is room.
func (t *Table) keepPiece(it *item) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.roomLocked(it.cost()) {
		return
	}
	p := &t.pieces
	slots := *p.slots.Load()
	if crowded(p.used, len(slots), mostPieceSlots, p.roomLocked(slots, it)) {
		slots = t.growPiecesLocked(slots)
	}
	t.bytes -= int64(p.putLocked(slots, it))
}

// crowded reports whether a table is to grow before something is put into it, for
// which there may be room. It is not crowded because of a few values that want the
// same slots.
func crowded(used, slots, most int, room bool) bool {
	return slots < most && (used*2 >= slots || !room && used*8 >= slots)
}

// roomLocked reports whether an item can be put into its window without another
// one being lost.
func (p *pieces) roomLocked(slots []pieceSlot, it *item) bool {
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		old := slots[(it.hash+k)&mask].item.Load()
		if old == nil || old.same(it) {
			return true
		}
		if _, alive := old.value(); !alive {
			return true
		}
	}
	return false
}

// putLocked puts an item into the first slot of its window that is free, whose
// value is dead or whose key is the same; if there is none, into the last one.
// It returns what the item that was there had cost.
func (p *pieces) putLocked(slots []pieceSlot, it *item) (freed int) {
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		slot := &slots[(it.hash+k)&mask]
		old := slot.item.Load()
		if old != nil && k < window-1 && !old.same(it) {
			if _, alive := old.value(); alive {
				continue
			}
		}
		if old == nil {
			p.used++
		} else {
			freed = old.cost()
		}
		slot.item.Store(it)
		slot.hash.Store(it.hash)
		return freed
	}
	return 0
}

// growPiecesLocked makes a table of twice the size, or of the same if enough of
// the items are dead.
func (t *Table) growPiecesLocked(old []pieceSlot) []pieceSlot {
	p := &t.pieces
	alive := 0
	for i := range old {
		if it := old[i].item.Load(); it != nil {
			if _, ok := it.value(); ok {
				alive++
			}
		}
	}
	n := len(old)
	if alive*4 > n {
		n *= 2
	}
	slots := make([]pieceSlot, n)
	p.used, p.hand = 0, 0
	for i := range old {
		it := old[i].item.Load()
		if it == nil {
			continue
		}
		if _, ok := it.value(); !ok {
			t.bytes -= int64(it.cost())
			t.counts.forgotten.Add(1)
			continue
		}
		t.bytes -= int64(p.putLocked(slots, it))
	}
	p.slots.Store(&slots)
	t.sightings.grow(n)
	return slots
}

// sweepLocked goes through n slots and drops the items whose values are dead, or
// all if the table is over its budget. It returns what they had cost.
func (p *pieces) sweepLocked(n int, all bool, forgotten *atomic.Int64) (freed int) {
	slots := *p.slots.Load()
	for range min(n, len(slots)) {
		p.hand = (p.hand + 1) & (len(slots) - 1)
		slot := &slots[p.hand]
		it := slot.item.Load()
		if it == nil {
			continue
		}
		if _, alive := it.value(); alive && !all {
			continue
		}
		slot.hash.Store(freeSlot)
		slot.item.Store(nil)
		p.used--
		freed += it.cost()
		forgotten.Add(1)
	}
	return freed
}
