package dedup

import (
	"hash/maphash"
	"math/bits"
	"unsafe"
)

// A hasher hashes values as they lie in memory, with a seed that no server can know.
type hasher struct {
	seed maphash.Seed
	key  uint64

	// failed says that the value holds something that must not be shared or is not
	// looked into.
	failed bool
	size   int // bytes of memory that lie behind the pointers of the value
	depth  int
	left   int // how many values may still be visited
}

// mostVisits bounds how many values of one object are looked at, again and again
// included: a value that holds itself would have no end.
const mostVisits = 1 << 20

func (h *hasher) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^b, h.key)
	return hi ^ lo ^ b
}

func (h *hasher) text(s string) uint64 { return maphash.String(h.seed, s) }

// part hashes what a step points to.
func (h *hasher) part(s *step, v value) uint64 {
	if v.at == nil {
		return 1
	}
	if h.left--; h.left < 0 || h.depth == maxDepth {
		h.failed = true
		return 0
	}
	h.depth++
	x := uint64(2)
	switch s.kind {
	case stepMap:
		x = h.mapping(s, v)
	case stepTree:
		x = h.tree(v)
	case stepList:
		x = h.list(asList(v))
	default:
		x = h.elements(s.elem, v, x)
	}
	h.depth--
	return x
}

// elements hashes the elements of a slice, or the one value behind a pointer.
func (h *hasher) elements(l *layout, v value, x uint64) uint64 {
	if l.opaque != nil || l.quantities {
		h.failed = true
		return 0
	}
	h.size += int(l.size) * v.n
	x = h.mix(x, uint64(v.n))
	if l.size == 1 && l.flat {
		return h.mix(x, h.text(unsafe.String((*byte)(v.at), v.n)))
	}
	for i := 0; i < v.n && !h.failed; i++ {
		x = h.block(l, unsafe.Add(v.at, uintptr(i)*l.size), x)
	}
	return x
}

// block hashes a value.
func (h *hasher) block(l *layout, at unsafe.Pointer, x uint64) uint64 {
	for i := range l.steps {
		s := &l.steps[i]
		p := unsafe.Add(at, s.offset)
		switch s.kind {
		case stepMemory:
			x = h.memory(p, s.size, x)
		case stepText:
			t := *(*string)(p)
			h.size += len(t)
			x = h.mix(x, h.text(t))
		case stepInterface:
			h.failed = h.failed || *(*unsafe.Pointer)(p) != nil
		case stepQuantity:
			h.failed = true
		default:
			x = h.mix(x, h.part(s, s.load(p)))
		}
		if h.failed {
			return 0
		}
	}
	return x
}

// memory hashes bits.
func (h *hasher) memory(p unsafe.Pointer, n uintptr, x uint64) uint64 {
	i := uintptr(0)
	for ; i+8 <= n; i += 8 {
		x = h.mix(x, *(*uint64)(unsafe.Add(p, i)))
	}
	if i == n {
		return x
	}
	return h.mix(x, bitsAt(unsafe.Add(p, i), n-i))
}

// bitsAt returns up to 8 bytes as a number.
func bitsAt(p unsafe.Pointer, n uintptr) (x uint64) {
	switch n {
	case 8:
		return *(*uint64)(p)
	case 4:
		return uint64(*(*uint32)(p))
	case 1:
		return uint64(*(*uint8)(p))
	}
	for i := range n {
		x |= uint64(*(*uint8)(unsafe.Add(p, i))) << (8 * i)
	}
	return x
}

// load returns what a field points to.
func (s *step) load(p unsafe.Pointer) value {
	if s.kind == stepSlice {
		h := (*sliceHeader)(p)
		return value{h.data, h.len}
	}
	return value{*(*unsafe.Pointer)(p), 1}
}
