package dedup

import "unsafe"

// elements counts the elements of a repeated field, of which the first begins at
// i and each has the tag t, and returns the index behind the last one, or -1 if
// an element is cut off. Elements that come again after other fields are not
// counted.
func elements(data []byte, i int, t uint32) (n, end int) {
	for i < len(data) {
		next := i + 1
		if t < 0x80 {
			if data[i] != byte(t) {
				break
			}
		} else {
			if next >= len(data) || data[i] != byte(t)|0x80 || uint32(data[next]) != t>>7 {
				break
			}
			next++
		}
		if _, next = span(data, next); next < 0 {
			return 0, -1
		}
		n, i = n+1, next
	}
	return n, i
}

// element returns the content of the element that begins at i, whose tag has that
// width, and the index behind it. The element is one that elements counted.
func element(data []byte, i, width int) (content []byte, next int) {
	start, end := span(data, i+width)
	return data[start:end:end], end
}

// width returns how many bytes of a tag elements expects.
func width(t uint32) int {
	if t < 0x80 {
		return 1
	}
	return 2
}

// repeated decodes the elements of a slice or a map, of which the first begins at
// begin. It returns the index behind the last one, or -1.
func (r *run) repeated(f *field, data []byte, begin int, to unsafe.Pointer) int {
	if f.op == opSkip {
		return passOver(data, begin, f.tag)
	}
	if f.tag&7 == wireVarint {
		return r.repeatedNumbers(f, data, begin, to)
	}
	n, end := elements(data, begin, f.tag)
	if n == 0 || end < 0 {
		return -1
	}
	v, ok := r.piece(f, data[begin:end:end], n)
	if !ok {
		return -1
	}
	if f.op == opMap {
		*(*unsafe.Pointer)(to) = v.at
	} else {
		*(*sliceHeader)(to) = sliceHeader{v.at, v.n, v.n}
	}
	return end
}

// passOver returns the index behind all that comes with the tag t from i on, or -1. What
// it passes over is not looked into.
func passOver(data []byte, i int, t uint32) int {
	for i < len(data) {
		have, next := tag(data, i)
		if next < 0 {
			return -1
		}
		if have != t {
			break
		}
		if i = skip(data, next, t&7); i < 0 {
			return -1
		}
	}
	return i
}

func (r *run) messages(f *field, data []byte, at unsafe.Pointer, n int) bool {
	w := width(f.tag)
	var content []byte
	for i, k := 0, 0; k < n; k++ {
		content, i = element(data, i, w)
		if !r.message(f.program, content, unsafe.Add(at, uintptr(k)*f.element)) {
			return false
		}
	}
	return true
}

func (r *run) strings(f *field, data []byte, into []string) {
	w := width(f.tag)
	var content []byte
	i := 0
	for k := range into {
		content, i = element(data, i, w)
		r.text(f.inner, content, &into[k])
	}
}

// repeatedNumbers decodes a slice of numbers. They are few and short, and not
// shared.
func (r *run) repeatedNumbers(f *field, data []byte, i int, to unsafe.Pointer) int {
	var values []uint64
	for i < len(data) {
		t, next := tag(data, i)
		if next < 0 {
			return -1
		}
		if t != f.tag {
			break
		}
		v, next := uvarint(data, next)
		if next < 0 {
			return -1
		}
		values, i = append(values, v), next
	}
	n := len(values)
	at := r.make(f.maker, n)
	for k, v := range values {
		one := unsafe.Add(at, uintptr(k)*f.element)
		switch f.op {
		case opBools:
			*(*bool)(one) = v != 0
		case opInt32s:
			*(*int32)(one) = int32(v)
		default:
			*(*int64)(one) = int64(v)
		}
	}
	*(*sliceHeader)(to) = sliceHeader{at, n, n}
	return i
}
