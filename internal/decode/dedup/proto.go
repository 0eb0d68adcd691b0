package dedup

import (
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// A protoWorker is the state of one goroutine that decodes objects of one Go type from protobuf.
type protoWorker struct {
	builder
	typedValues
	depth int
}

func newProtoWorker(t *Table, p *plan, sharing Sharing) *protoWorker {
	return &protoWorker{builder: newBuilder(t, sharing), typedValues: newTypedValues(p)}
}

// decode decodes an object, as objectWorker has it.
func (w *protoWorker) decode(_ kindOf, data []byte, to unsafe.Pointer) (ok bool, refused error) {
	tag := noTag
	if w.plan.hasMetadata {
		tag = tagIn(data)
	}
	w.begin(tag)
	ok = w.message(w.plan.root, data, to)
	return ok, w.endObject(ok)
}

// message decodes the fields of a message. It returns false for everything but the exact output of
// Go's encoders of API types: known fields in rising order, each in one place, each of its wire
// type. Other legal forms are left to the generated code.
func (w *protoWorker) message(l *layout, data []byte, to unsafe.Pointer) bool {
	if l.decode != nil {
		return l.decode(w, data, to)
	}
	last := uint32(0)
	for i := 0; i < len(data); {
		begin := i
		t := uint32(data[i])
		i++
		if t >= 0x80 {
			if t, i = wire.Tag(data, begin); i < 0 {
				return false
			}
		}
		number := t >> 3
		if number < last || number == 0 {
			return false
		}
		known := uint8(0)
		if int(number) < len(l.byNumber) {
			known = l.byNumber[number]
		}
		if known == 0 {
			last = number
			if i = wire.Skip(data, i, t&7); i < 0 {
				return false
			}
			continue
		}
		f := &l.fields[known-1]
		if f.tag != t || number == last {
			return false
		}
		last = number
		at := unsafe.Add(to, f.offset)
		if f.kind >= kindSlice {
			i = w.repeated(f, data, begin, at)
		} else {
			i = w.single(f, data, i, at)
		}
		if i < 0 {
			return false
		}
	}
	return true
}

// single decodes a field that comes once, whose value begins at i. It returns the index
// after it, or -1.
func (w *protoWorker) single(f *field, data []byte, i int, at unsafe.Pointer) int {
	// A number, or the length of the content.
	var v uint64
	if i < len(data) && data[i] < 0x80 {
		v = uint64(data[i])
		i++
	} else if v, i = wire.Varint(data, i); i < 0 {
		return -1
	}
	if f.tag&7 == wire.VarintType {
		w.number(f, v, at)
		return i
	}
	if v > uint64(len(data)-i) {
		return -1
	}
	end := i + int(v)
	content := data[i:end:end]
	ok := true
	switch f.kind {
	case kindString:
		w.text(f.stats, content, (*string)(at))
	case kindStruct:
		ok = w.message(f.elem, content, at)
	case kindBytes:
		w.size += len(content)
		*(*[]byte)(at) = exactCopy(content)
	default:
		var made value
		made, ok = w.value(f, content, 1)
		*(*unsafe.Pointer)(at) = made.at
	}
	if !ok {
		return -1
	}
	return end
}

func (w *protoWorker) number(f *field, v uint64, at unsafe.Pointer) {
	if f.kind != kindNumber {
		setNumber(f.size, v, at)
		return
	}
	setNumber(f.size, v, unsafe.Pointer(&v))
	*(*unsafe.Pointer)(at) = w.numberAt(f.size, bitsAt(unsafe.Pointer(&v), f.size))
}

// setNumber sets a bool, if it has the size of one, or a number.
func setNumber(size uintptr, v uint64, at unsafe.Pointer) {
	switch size {
	case 1:
		*(*bool)(at) = v != 0
	case 4:
		*(*uint32)(at) = uint32(v)
	default:
		*(*uint64)(at) = v
	}
}

func (w *protoWorker) make(l *layout, n int) unsafe.Pointer {
	w.size += n * int(l.size)
	return w.typedValues.make(l, n)
}

func (w *protoWorker) text(stats int32, content []byte, to *string) {
	w.builder.text(&w.stats[stats], content, to)
}

// maxShared bounds the bytes of a value that is shared as a whole; larger ones are shared in
// parts.
const maxShared = 1 << 14

// value returns the value of a field whose n elements are in data: one that was decoded
// before from the same bytes, if it is still in use, or a new one.
func (w *protoWorker) value(f *field, data []byte, n int) (value, bool) {
	if w.sharing != ShareAll || len(data) > maxShared || len(data) == 0 {
		return w.build(f, data, n)
	}
	s := &w.stats[f.stats]
	if !w.tries(s) {
		return w.build(f, data, n)
	}
	v, h, kept := w.decoded(s, f.space, data)
	if v.at != nil {
		return v, true
	}
	if !kept {
		return w.build(f, data, n)
	}
	key := string(data)
	outer := w.beginPart()
	v, ok := w.build(f, bytesOf(key), n)
	if ok && !w.unshared {
		w.keep(h, f.space, key, v, w.size)
	}
	w.endPart(outer)
	return v, ok
}

func (w *protoWorker) build(f *field, data []byte, n int) (v value, ok bool) {
	if w.depth == maxDepth {
		return value{}, false
	}
	w.depth++
	defer func() { w.depth-- }()
	if f.kind == kindMap {
		at, ok := w.newMap(f, data, n)
		return value{at, n}, ok
	}
	l := f.elem
	v = value{w.make(l, n), n}
	if l.kind == kindString {
		if f.kind == kindPointer {
			w.text(f.inner, data, (*string)(v.at))
		} else {
			w.strings(f, data, unsafe.Slice((*string)(v.at), n))
		}
		return v, true
	}
	if l.selfWriting {
		w.unshared = true
	}
	if f.kind == kindPointer {
		return v, w.message(l, data, v.at)
	}
	return v, w.messages(f, data, v)
}
