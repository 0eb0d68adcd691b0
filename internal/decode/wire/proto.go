package wire

// The wire types of protobuf.
const (
	VarintType     = 0
	Fixed64Type    = 1
	BytesType      = 2
	StartGroupType = 3
	EndGroupType   = 4
	Fixed32Type    = 5
)

// Varint reads a number at i. Like the generated code, it accepts up to ten bytes and
// ignores the bits beyond 64.
func Varint(b []byte, i int) (uint64, int) {
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

// Span reads a length at i. It returns where the content of that length begins and ends.
func Span(b []byte, i int) (start, end int) {
	if uint(i) < uint(len(b)) && b[i] < 0x80 {
		start = i + 1
		end = start + int(b[i])
		if end > len(b) {
			return 0, -1
		}
		return start, end
	}
	v, start := Varint(b, i)
	if start < 0 || v > uint64(len(b)-start) {
		return 0, -1
	}
	return start, start + int(v)
}

// Tag reads the tag of a field at i: its number and wire type. It refuses tags that no
// encoder writes, which generated code reads in ways of its own.
func Tag(b []byte, i int) (uint32, int) {
	v, next := Varint(b, i)
	if next < 0 || next-i > 5 || v > 1<<32-1 {
		return 0, -1
	}
	return uint32(v), next
}

// Skip returns the index after a value at i that is not a group.
func Skip(b []byte, i int, wireType uint32) int {
	switch wireType {
	case VarintType:
		_, i = Varint(b, i)
		return i
	case BytesType:
		_, end := Span(b, i)
		return end
	case Fixed64Type:
		i += 8
	case Fixed32Type:
		i += 4
	default:
		return -1
	}
	if i > len(b) {
		return -1
	}
	return i
}

// SkipField returns the index after a field whose tag is at i, groups included. A group ends
// where as many have ended as have begun, as in the generated code.
func SkipField(b []byte, i int) int {
	for depth := 0; ; {
		var tag uint64
		if tag, i = Varint(b, i); i < 0 {
			return -1
		}
		switch wireType := uint32(tag & 7); wireType {
		case StartGroupType:
			depth++
		case EndGroupType:
			depth--
		default:
			if i = Skip(b, i, wireType); i < 0 {
				return -1
			}
		}
		if depth <= 0 {
			if depth < 0 {
				return -1
			}
			return i
		}
	}
}
