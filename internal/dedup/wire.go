package dedup

// The wire types of protobuf that API types use, and those that unknown fields may have.
const (
	wireVarint     = 0
	wireFixed64    = 1
	wireBytes      = 2
	wireStartGroup = 3
	wireEndGroup   = 4
	wireFixed32    = 5
)

// uvarint reads a varint at i. It returns the index behind it, or -1 where there
// is none: cut off, or longer than 64 bits.
func uvarint(b []byte, i int) (uint64, int) {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if uint(i) >= uint(len(b)) {
			return 0, -1
		}
		c := b[i]
		i++
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v, i
		}
	}
	return 0, -1
}

// span reads a length at i and returns where what it announces begins and ends.
// The end is -1 if that is not all there.
func span(b []byte, i int) (start, end int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		start = i + 1
		end = start + int(b[i])
		if end > len(b) {
			return 0, -1
		}
		return start, end
	}
	v, start := uvarint(b, i)
	if start < 0 || v > uint64(len(b)-start) {
		return 0, -1
	}
	return start, start + int(v)
}

// tag reads the tag of a field at i: its number and wire type. It returns -1 for
// tags that no encoder writes, which generated code reads in ways of its own.
func tag(b []byte, i int) (uint32, int) {
	v, next := uvarint(b, i)
	if next < 0 || next-i > 5 || v > 1<<32-1 {
		return 0, -1
	}
	return uint32(v), next
}

// skip returns the index behind the value of an unknown field, or -1.
func skip(b []byte, i int, wireType uint32) int {
	switch wireType {
	case wireVarint:
		_, i = uvarint(b, i)
		return i
	case wireBytes:
		_, end := span(b, i)
		return end
	case wireFixed64:
		i += 8
	case wireFixed32:
		i += 4
	default:
		return -1
	}
	if i > len(b) {
		return -1
	}
	return i
}
