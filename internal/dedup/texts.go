package dedup

import "sync/atomic"

// texts finds strings by their bytes. It holds them itself, and drops those that no object
// but the one that brought them asked for while the sweep went round once. Readers take no
// lock.
type texts struct {
	slots atomic.Pointer[[]textSlot]
	used  int // slots with a string; guarded by the table's lock, as hand is
	hand  int
}

type textSlot struct {
	hash  atomic.Uint64
	text  atomic.Pointer[string]
	state atomic.Uint32 // who brought the text, and asked
}

// asked is set in the state of a slot when somebody else has asked for the text since the
// last sweep. The bits from byBit on are the owner that brought it.
const (
	asked = 1
	byBit = 1
)

const (
	leastTextSlots = 1 << 10
	mostTextSlots  = 1 << 16

	// costText is what a string takes beside its bytes.
	costText = 64
	// maxText bounds the strings that are shared on their own.
	maxText = 1 << 10
)

// textShape is the shape of all strings.
var textShape = &shape{}

func (x *texts) start() {
	slots := make([]textSlot, leastTextSlots)
	x.slots.Store(&slots)
}

// find returns the string with this content, and whether the one who asks has brought it.
func (x *texts) find(h uint64, content []byte, by owner) (text string, own, ok bool) {
	s, own := x.box(h, content, by)
	if s == nil {
		return "", false, false
	}
	return *s, own, true
}

// box returns where the string with this content is, or nil, and whether the one who asks
// has brought it. Nobody writes there.
func (x *texts) box(h uint64, content []byte, by owner) (text *string, own bool) {
	slots := *x.slots.Load()
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
		if s := slot.text.Load(); s != nil && *s == string(content) {
			state := slot.state.Load()
			own = by != anyone && owner(state>>byBit) == by
			if !own && state&asked == 0 {
				slot.state.Store(state | asked)
			}
			return s, own
		}
	}
	return nil, false
}

// keepText puts a string into the table, if there is room.
func (t *Table) keepText(h uint64, s string, by owner) { t.keepBox(h, &s, by) }

// keepBox puts a string into the table, if there is room, where it is.
func (t *Table) keepBox(h uint64, s *string, by owner) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.roomLocked(costText + len(*s)) {
		return
	}
	x := &t.texts
	slots := *x.slots.Load()
	if crowded(x.used, len(slots), mostTextSlots, x.freeLocked(slots, h).text.Load() == nil) {
		slots = t.growTextsLocked(slots)
	}
	t.bytes -= int64(x.putLocked(slots, h, s, uint32(by)<<byBit|asked))
}

// freeLocked returns the first free slot of a window or, if there is none, the
// first one.
func (x *texts) freeLocked(slots []textSlot, h uint64) *textSlot {
	mask := uint64(len(slots) - 1)
	for k := range uint64(window) {
		if slot := &slots[(h+k)&mask]; slot.text.Load() == nil {
			return slot
		}
	}
	return &slots[h&mask]
}

// putLocked puts a string into its window. It returns what the string that was
// there had cost.
func (x *texts) putLocked(slots []textSlot, h uint64, s *string, state uint32) (freed int) {
	slot := x.freeLocked(slots, h)
	if old := slot.text.Load(); old != nil {
		freed = costText + len(*old)
	} else {
		x.used++
	}
	slot.text.Store(s)
	slot.state.Store(state)
	slot.hash.Store(h)
	return freed
}

func (t *Table) growTextsLocked(old []textSlot) []textSlot {
	x := &t.texts
	slots := make([]textSlot, 2*len(old))
	x.used, x.hand = 0, 0
	for i := range old {
		if s := old[i].text.Load(); s != nil {
			t.bytes -= int64(x.putLocked(slots, old[i].hash.Load(), s, old[i].state.Load()))
		}
	}
	x.slots.Store(&slots)
	t.sightings.grow(len(slots))
	return slots
}

// sweepLocked goes through n slots and drops the strings that nobody else asked for
// since it last came by. It returns what they had cost, and whether it has been
// everywhere.
func (x *texts) sweepLocked(n int, forgotten *atomic.Int64) (freed int, wrapped bool) {
	slots := *x.slots.Load()
	for range n {
		x.hand++
		if x.hand >= len(slots) {
			x.hand, wrapped = 0, true
		}
		slot := &slots[x.hand]
		s := slot.text.Load()
		if s == nil {
			continue
		}
		if state := slot.state.Load(); state&asked != 0 {
			slot.state.Store(state &^ asked)
			continue
		}
		slot.hash.Store(freeSlot)
		slot.text.Store(nil)
		x.used--
		freed += costText + len(*s)
		forgotten.Add(1)
	}
	return freed, wrapped
}
