package dedup

import (
	"hash/maphash"
	"maps"
	"math/bits"
	"slices"
	"unsafe"
)

// A hasher hashes values as they lie in memory, with a seed that no server can know.
type hasher struct {
	seed maphash.Seed
	key  uint64

	// failed reports whether the value holds a part that must not be shared or is not looked into.
	failed bool
	size   int // bytes of memory behind the pointers of the value
	depth  int
	left   int // how many values may still be visited
}

// maxVisits bounds how many values of one object are visited, each as often as it occurs: a
// value that holds itself would have no end.
const maxVisits = 1 << 20

func (h *hasher) mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^b, h.key)
	return hi ^ lo ^ b
}

func (h *hasher) text(s string) uint64 { return maphash.String(h.seed, s) }

// sized hashes a string and counts its size.
func (h *hasher) sized(s string) uint64 {
	h.size += len(s)
	return h.text(s)
}

// enter begins a value within another one. It reports whether there may be one more.
func (h *hasher) enter() bool {
	if h.left--; h.left < 0 || h.depth == maxDepth {
		h.failed = true
	}
	h.depth++
	return !h.failed
}

func (h *hasher) value(f *field, v value) (x uint64) {
	if v.at == nil {
		return 1
	}
	if h.enter() {
		switch f.kind {
		case kindMap:
			x = h.mapping(f.elem, v)
		case kindObject:
			x = hashEntries(h, mapOf[any](v), h.generic)
		case kindArray:
			x = h.array(listOf(v))
		default:
			x = h.elements(f.elem, v)
		}
	}
	h.depth--
	return x
}

// elements hashes the elements of a slice, or the one value behind a pointer.
func (h *hasher) elements(l *layout, v value) uint64 {
	if l.opaque != nil || l.selfWriting {
		h.failed = true
		return 0
	}
	h.size += int(l.size) * v.n
	x := h.mix(2, uint64(v.n))
	if l.size == 1 && l.flat {
		return h.mix(x, h.text(unsafe.String((*byte)(v.at), v.n)))
	}
	for i := 0; i < v.n && !h.failed; i++ {
		x = h.fields(l, unsafe.Add(v.at, uintptr(i)*l.size), x)
	}
	return x
}

func (h *hasher) fields(l *layout, at unsafe.Pointer, x uint64) uint64 {
	for i := range l.fields {
		f := &l.fields[i]
		p := unsafe.Add(at, f.offset)
		switch f.kind {
		case kindBits:
			x = h.memory(p, f.size, x)
		case kindString:
			x = h.mix(x, h.sized(*(*string)(p)))
		case kindAny:
			h.failed = h.failed || *(*unsafe.Pointer)(p) != nil
		case kindQuantity:
			h.failed = true
		default:
			x = h.mix(x, h.value(f, load(f.kind, p)))
		}
		if h.failed {
			return 0
		}
	}
	return x
}

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

// equalValues reports whether two values that a field points to are the same. One of them
// was hashed without a failure: it holds nothing that cannot be compared.
func equalValues(f *field, a, b value) bool {
	if a == b {
		return true
	}
	if a.at == nil || b.at == nil || a.n != b.n {
		return false
	}
	switch f.kind {
	case kindMap:
		return equalMaps(f.elem, a, b)
	case kindObject:
		return maps.EqualFunc(mapOf[any](a), mapOf[any](b), equalGeneric)
	case kindArray:
		return slices.EqualFunc(listOf(a), listOf(b), equalGeneric)
	}
	l := f.elem
	if l.size == 1 && l.flat {
		return unsafe.String((*byte)(a.at), a.n) == unsafe.String((*byte)(b.at), b.n)
	}
	for i := range a.n {
		offset := uintptr(i) * l.size
		if !equalFields(l, unsafe.Add(a.at, offset), unsafe.Add(b.at, offset)) {
			return false
		}
	}
	return true
}

func equalFields(l *layout, a, b unsafe.Pointer) bool {
	for i := range l.fields {
		f := &l.fields[i]
		p, q := unsafe.Add(a, f.offset), unsafe.Add(b, f.offset)
		equal := false
		switch f.kind {
		case kindBits:
			equal = equalMemory(p, q, f.size)
		case kindString:
			equal = *(*string)(p) == *(*string)(q)
		case kindAny:
			equal = *(*unsafe.Pointer)(p) == nil && *(*unsafe.Pointer)(q) == nil
		case kindQuantity:
		default:
			equal = equalValues(f, load(f.kind, p), load(f.kind, q))
		}
		if !equal {
			return false
		}
	}
	return true
}

func equalMemory(p, q unsafe.Pointer, n uintptr) bool {
	switch n {
	case 1, 4, 8:
		return bitsAt(p, n) == bitsAt(q, n)
	default:
		return unsafe.String((*byte)(p), n) == unsafe.String((*byte)(q), n)
	}
}
