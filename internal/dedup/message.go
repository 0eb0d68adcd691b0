package dedup

import "unsafe"

// message decodes the fields of a message. It returns false for everything that
// is not exactly what Go's encoders of API types write: known fields in rising
// order, each in one place, each of its wire type. What else is legal, and how it
// is read then, is left to the generated code.
func (r *run) message(p *program, data []byte, to unsafe.Pointer) bool {
	if p.hand != nil {
		return p.hand(r, data, to)
	}
	last := uint32(0)
	for i := 0; i < len(data); {
		begin := i
		t := uint32(data[i])
		i++
		if t >= 0x80 {
			if t, i = tag(data, begin); i < 0 {
				return false
			}
		}
		number := t >> 3
		if number < last || number == 0 {
			return false
		}
		known := uint8(0)
		if int(number) < len(p.byNumber) {
			known = p.byNumber[number]
		}
		if known == 0 {
			last = number
			if i = skip(data, i, t&7); i < 0 {
				return false
			}
			continue
		}
		f := &p.fields[known-1]
		if f.tag != t || number == last {
			return false
		}
		last = number
		at := unsafe.Add(to, f.offset)
		if f.op >= opStrings {
			if i = r.repeated(f, data, begin, at); i < 0 {
				return false
			}
			continue
		}
		// A number, or the length of what follows.
		var v uint64
		if i < len(data) && data[i] < 0x80 {
			v = uint64(data[i])
			i++
		} else if v, i = uvarint(data, i); i < 0 {
			return false
		}
		if t&7 == wireVarint {
			r.number(f, v, at)
			continue
		}
		if v > uint64(len(data)-i) {
			return false
		}
		end := i + int(v)
		if !r.single(f, data[i:end:end], at) {
			return false
		}
		i = end
	}
	return true
}

// single decodes a field that holds one string, one message or bytes.
func (r *run) single(f *field, content []byte, at unsafe.Pointer) bool {
	switch f.op {
	case opString:
		r.text(f.site, content, (*string)(at))
		return true
	case opMessage:
		return r.message(f.program, content, at)
	case opBytes:
		b := make([]byte, len(content))
		copy(b, content)
		r.saves += len(b)
		*(*[]byte)(at) = b
		return true
	default:
		v, ok := r.piece(f, content, 1)
		*(*unsafe.Pointer)(at) = v.at
		return ok
	}
}

// number sets a field to a number, or to a pointer to one.
func (r *run) number(f *field, v uint64, at unsafe.Pointer) {
	switch f.op {
	case opBool:
		*(*bool)(at) = v != 0
	case opInt32:
		*(*int32)(at) = int32(v)
	case opInt64:
		*(*int64)(at) = int64(v)
	default:
		*(*unsafe.Pointer)(at) = r.numberPointer(f, v)
	}
}

// numbers has pointers to numbers that were decoded lately: every object points
// to a handful of the same ones.
type numbers struct {
	bools  [2]*bool
	int32s [64]*int32
	int64s [64]*int64
}

func (r *run) numberPointer(f *field, v uint64) unsafe.Pointer {
	share := r.sharing == ShareAll
	switch f.op {
	case opBoolPointer:
		b := v != 0
		return unsafe.Pointer(sharedNumber(&r.numbers.bools[min(v, 1)], b, share))
	case opInt32Pointer:
		return unsafe.Pointer(sharedNumber(&r.numbers.int32s[v%64], int32(v), share))
	default:
		return unsafe.Pointer(sharedNumber(&r.numbers.int64s[v%64], int64(v), share))
	}
}

func sharedNumber[N bool | int32 | int64](slot **N, v N, share bool) *N {
	if !share {
		return &v
	}
	if *slot == nil || **slot != v {
		*slot = &v
	}
	return *slot
}
