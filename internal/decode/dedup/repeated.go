package dedup

import (
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// countElements counts the elements of a repeated field, of which the first begins at i and
// each has the tag t, and returns the index after the last one, or -1 if one is cut off.
// Elements that come again after other fields are not counted.
func countElements(data []byte, i int, t uint32) (n, end int) {
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
		if _, next = wire.Span(data, next); next < 0 {
			return 0, -1
		}
		n, i = n+1, next
	}
	return n, i
}

// element returns the content of the element that begins at i, whose tag has that width, and
// the index after it. The element was counted by countElements.
func element(data []byte, i, width int) (content []byte, next int) {
	start, end := wire.Span(data, i+width)
	return data[start:end:end], end
}

// tagWidth returns the number of bytes of a tag that countElements expects.
func tagWidth(t uint32) int {
	if t < 0x80 {
		return 1
	}
	return 2
}

// repeated decodes the elements of a slice or a map, of which the first begins at begin. It
// returns the index after the last one, or -1.
func (w *protoWorker) repeated(f *field, data []byte, begin int, to unsafe.Pointer) int {
	if f.kind == kindDropped {
		_, end := countTags(data, begin, f.tag)
		return end
	}
	if f.tag&7 == wire.VarintType {
		return w.numbers(f, data, begin, to)
	}
	n, end := countElements(data, begin, f.tag)
	if n == 0 || end < 0 {
		return -1
	}
	v, ok := w.value(f, data[begin:end:end], n)
	if !ok {
		return -1
	}
	store(f.kind, to, v)
	return end
}

// countTags counts the values with the tag t from i on, and returns the index after the last
// one, or -1.
func countTags(data []byte, i int, t uint32) (n, end int) {
	for ; i < len(data); n++ {
		have, next := wire.Tag(data, i)
		if next < 0 {
			return 0, -1
		}
		if have != t {
			break
		}
		if i = wire.Skip(data, next, t&7); i < 0 {
			return 0, -1
		}
	}
	return n, i
}

func (w *protoWorker) messages(f *field, data []byte, v value) bool {
	width := tagWidth(f.tag)
	var content []byte
	for i, k := 0, 0; k < v.n; k++ {
		content, i = element(data, i, width)
		if !w.message(f.elem, content, unsafe.Add(v.at, uintptr(k)*f.elem.size)) {
			return false
		}
	}
	return true
}

func (w *protoWorker) strings(f *field, data []byte, into []string) {
	width := tagWidth(f.tag)
	var content []byte
	i := 0
	for k := range into {
		content, i = element(data, i, width)
		w.text(f.inner, content, &into[k])
	}
}

// numbers decodes a slice of numbers. They are few and short, and not shared.
func (w *protoWorker) numbers(f *field, data []byte, i int, to unsafe.Pointer) int {
	n, end := countTags(data, i, f.tag)
	if end < 0 {
		return -1
	}
	at := w.make(f.elem, n)
	for k := range uintptr(n) {
		var v uint64
		_, i = wire.Tag(data, i)
		v, i = wire.Varint(data, i)
		setNumber(f.elem.size, v, unsafe.Add(at, k*f.elem.size))
	}
	store(kindSlice, to, value{at, n})
	return end
}
