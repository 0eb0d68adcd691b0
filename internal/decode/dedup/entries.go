package dedup

import (
	"sync/atomic"
	"unsafe"
	"weak"
)

const (
	leastValueSlots, mostValueSlots = 1 << 8, 1 << 20
	leastTextSlots, mostTextSlots   = 1 << 10, 1 << 16

	// costValue is the memory of the entry of a value without its key: the entry, its share of
	// the slots, and the runtime's memory for the weak pointer.
	costValue = 160
	// costText is the memory of an entry of a string without its bytes.
	costText = 64
	// maxText bounds the strings that are shared on their own.
	maxText = 1 << 10
)

// A keySpace separates keys in a table: the same bytes mean the same value only where they
// are read as the same Go type, and without the same fields.
type keySpace struct {
	salt uint64 // makes the hashes of the same bytes differ
}

// textSpace is the key space of all strings.
var textSpace = &keySpace{}

// A valueEntry is the entry of a message, a slice or a map. It does not change.
type valueEntry struct {
	space  *keySpace
	key    string             // the bytes that the value was decoded from; "" for a Sharer's
	at     weak.Pointer[byte] // the table does not keep the value alive
	n      int32              // elements of a slice
	size   int32              // bytes of memory that sharing the value saves
	object objectTag          // of the object that had the value first
}

func (e *valueEntry) value() (value, bool) {
	p := e.at.Value()
	return value{unsafe.Pointer(p), int(e.n)}, p != nil
}

func (e *valueEntry) cost() int                { return costValue + len(e.key) }
func (e *valueEntry) same(as *valueEntry) bool { return e.space == as.space && e.key == as.key }
func (e *valueEntry) dead() bool               { return e.at.Value() == nil }
func (e *valueEntry) expired(full bool) bool   { return full || e.dead() }

// findValue returns the entry with a key in a key space, and its value, or a nil entry. If
// equal is not nil, the key is empty and equal decides.
func (t *Table) findValue(h uint64, space *keySpace, key []byte,
	equal func(value) bool) (e *valueEntry, v value) {
	e = t.values.find(h, func(e *valueEntry) (ok bool) {
		if e.space != space || e.key != string(key) {
			return false
		}
		v, ok = e.value()
		return ok && (equal == nil || equal(v))
	})
	return e, v
}

// A textEntry is a string, which the table keeps alive.
type textEntry struct {
	text string
	// state has the tag of the object that had the string first, and whether another object
	// has asked for it since the last sweep.
	state atomic.Uint32
}

// asked is set in the state of an entry; the tag is above it.
const (
	asked   = 1
	tagBits = 1
)

func newTextEntry(text string, object objectTag) *textEntry {
	e := &textEntry{text: text}
	e.state.Store(uint32(object)<<tagBits | asked)
	return e
}

func (e *textEntry) cost() int               { return costText + len(e.text) }
func (e *textEntry) same(as *textEntry) bool { return e.text == as.text }
func (e *textEntry) dead() bool              { return false }

func (e *textEntry) expired(bool) bool {
	state := e.state.Load()
	if state&asked != 0 {
		e.state.Store(state &^ asked)
		return false
	}
	return true
}

// findText returns the string with this content, or nil, and whether the object that asks
// for it had it first. The string must not be written to.
func (t *Table) findText(h uint64, content []byte, object objectTag) (text *string, own bool) {
	e := t.texts.find(h, func(e *textEntry) bool { return e.text == string(content) })
	if e == nil {
		return nil, false
	}
	state := e.state.Load()
	own = object != noTag && objectTag(state>>tagBits) == object
	if !own && state&asked == 0 {
		e.state.Store(state | asked)
	}
	return &e.text, own
}
