package dedup

import (
	"encoding/binary"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// expectations are the values in JSON that come next, if the next object is like the last ones:
// for the bytes around the beginning of a value, the entry of the value that was there last. An
// expected value need not be cut into tokens.
type expectations struct {
	values [1 << expectedBits]expected
	round  uint32
}

// expected is a value that comes next, in the shape in which its bytes were cut: in another one,
// more of them may be read.
type expected struct {
	entry *valueEntry
	shape uint16
}

const (
	expectedBits = 8
	// leastExpected and mostExpected bound the bytes of a value that is expected. Smaller ones
	// are cut as fast; the keys take up to 1 MiB.
	leastExpected, mostExpected = 32, 4 << 10
	// aroundBegin is the number of bytes before the beginning of a value, and after it, that tell
	// it from others.
	aroundBegin = 16
)

// begin forgets everything when the table was swept.
func (x *expectations) begin(round uint32) {
	if x.round != round {
		clear(x.values[:])
		x.round = round
	}
}

// slot returns where the value that begins at i is, or nil.
func (x *expectations) slot(data []byte, i int) *expected {
	if i < aroundBegin || i+aroundBegin > len(data) {
		return nil
	}
	around := data[i-aroundBegin : i+aroundBegin]
	h := binary.LittleEndian.Uint64(around) ^ binary.LittleEndian.Uint64(around[8:])*31 ^
		binary.LittleEndian.Uint64(around[16:])*37 ^ binary.LittleEndian.Uint64(around[24:])*41
	return &x.values[h*0x9e3779b97f4a7c15>>(64-expectedBits)]
}

// end returns the index after the value of a shape that begins at i if that is the expected one,
// or -1.
func (x *expectations) end(data []byte, i int, shape uint16) int {
	slot := x.slot(data, i)
	if slot == nil || slot.entry == nil || slot.shape != shape {
		return -1
	}
	key := slot.entry.key
	if end := i + len(key); end <= len(data) && string(data[i:end]) == key {
		return end
	}
	return -1
}

// expect notes the entry of the value at a token.
func (x *expectations) expect(data []byte, t *wire.Token, e *valueEntry) {
	if n := t.End - t.Begin; n < leastExpected || n > mostExpected || t.IsText() {
		return
	}
	slot := x.slot(data, int(t.Begin))
	if slot != nil && (slot.entry != e || slot.shape != t.Shape) {
		*slot = expected{e, t.Shape}
	}
}
