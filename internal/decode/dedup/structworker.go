package dedup

import (
	"math"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// A structWorker is the state of one goroutine that decodes objects of one Go type from JSON.
// It decodes values in interfaces as maps.
type structWorker struct {
	mapWorker
	typedValues
	expected expectations
	generic  int32 // the path of all values in interfaces
}

func newStructWorker(t *Table, p *plan, sharing Sharing) *structWorker {
	w := &structWorker{mapWorker: *newMapWorker(t, sharing), typedValues: newTypedValues(p)}
	if sharing == ShareAll {
		w.tokens.Known = w.expected.end
	}
	if p.view {
		w.tokens.Root, w.tokens.Field = p.root.shape(), p.fieldShape
	}
	return w
}

// maxGenericBoxes bounds the strings of values in interfaces for which room is made at once.
const maxGenericBoxes = 4

// decode decodes an object, as objectWorker has it.
func (w *structWorker) decode(
	of kindOf, data []byte, to unsafe.Pointer,
) (ok bool, refused error) {
	defer w.close()
	w.expected.begin(w.table.round.Load())
	if !w.open(data) || w.plan.view && !w.isOf(of) {
		return false, nil
	}
	w.generic = w.paths.root("")
	w.boxes.atOnce = maxGenericBoxes
	ok = w.object(w.plan.root, 0, to)
	return ok, w.endObject(ok)
}

// raw returns the text of a token, a string's with its quotes.
func (w *structWorker) raw(t *wire.Token) []byte {
	begin, end := t.Begin-w.base, t.End-w.base
	if t.IsText() {
		begin, end = begin-1, end+1
	}
	return w.data[begin:end:end]
}

// copied returns a copy of the text of a token, as a source of the tokens in it.
func (w *structWorker) copied(t *wire.Token) source {
	raw := w.raw(t)
	begin := t.Begin
	if t.IsText() {
		begin--
	}
	return source{exactCopy(raw), begin}
}

// object decodes the fields of a struct. It returns false for everything that is not exactly
// one value of its type for each field: that is left to the API machinery.
func (w *structWorker) object(l *layout, i uint32, to unsafe.Pointer) bool {
	i = w.tokens.Open(i)
	var seen [4]uint64 // by the index of a field
	all := w.tokens.All
	next := 0 // Go's encoders write the fields in the order of the source
	for k := i + 1; k < all[i].Next; k = all[k+1].Next {
		name := w.bytes(&all[k])
		if all[k].Kind == wire.Escaped {
			name = w.content(&all[k])
		}
		n := next
		if n >= len(l.names) || l.names[n] != string(name) {
			n = l.named(name)
		}
		if n < 0 {
			continue
		}
		if next = n + 1; l.fields[n].kind == kindDropped {
			continue
		}
		f, bit := &l.fields[n], uint64(1)<<(n&63)
		if seen[n>>6]&bit != 0 {
			return false
		}
		seen[n>>6] |= bit
		if !w.value(f, k+1, unsafe.Add(to, f.offset)) {
			return false
		}
	}
	return true
}

// value decodes a value into a field, which has the zero value: null leaves that there.
func (w *structWorker) value(f *field, i uint32, to unsafe.Pointer) bool {
	t := &w.tokens.All[i]
	switch {
	case f.kind == kindUnknown:
		return false
	case f.kind == kindStruct && f.elem.read != nil:
		return f.elem.read(w, f.elem, i, to)
	case t.Kind == wire.Null:
		return true
	}
	switch f.kind {
	case kindStruct:
		return t.Kind == wire.Object && w.object(f.elem, i, to)
	case kindString:
		return w.text(f.stats, t, (*string)(to))
	case kindBytes:
		return t.IsText() && w.base64(t, (*[]byte)(to))
	case kindBits:
		bits, ok := w.number(reflect.Kind(f.tag), f.size, t)
		setBits(to, f.size, bits)
		return ok
	case kindNumber:
		bits, ok := w.number(reflect.Kind(f.tag), f.size, t)
		*(*unsafe.Pointer)(to) = w.numberAt(f.size, bits)
		return ok
	case kindAny:
		*(*any)(to) = w.mapWorker.value(i, w.generic, nil)
		return true
	}
	v, ok := w.target(f, i)
	store(f.kind, to, v)
	return ok
}

func (w *structWorker) text(stats int32, t *wire.Token, to *string) bool {
	switch {
	case t.Kind == wire.Null:
		return true
	case t.Kind == wire.Escaped && w.owned:
		content := w.content(t)
		w.size += len(content)
		*to = string(content)
		return true
	}
	if t.IsText() {
		w.builder.text(&w.stats[stats], w.content(t), to)
	}
	return t.IsText()
}

// number returns the bits of a number or a bool of a kind, if it has that size exactly.
func (w *structWorker) number(kind reflect.Kind, size uintptr, t *wire.Token) (uint64, bool) {
	unused := 64 - 8*int(size)
	switch {
	case kind == reflect.Bool:
		return uint64(t.Kind - wire.False), t.Kind == wire.False || t.Kind == wire.True
	case kind == reflect.Float32, kind == reflect.Float64:
		if t.Kind != wire.Integer && t.Kind != wire.Float {
			return 0, false
		}
		v, err := strconv.ParseFloat(string(w.bytes(t)), 8*int(size))
		if size == 4 {
			return uint64(math.Float32bits(float32(v))), err == nil
		}
		return math.Float64bits(v), err == nil
	case t.Kind != wire.Integer:
		return 0, false
	case kind <= reflect.Int64:
		v, ok := integer(w.bytes(t))
		return uint64(v), ok && v<<unused>>unused == v
	default:
		v, err := strconv.ParseUint(string(w.bytes(t)), 10, 64)
		return v, err == nil && v<<unused>>unused == v
	}
}

// target returns the value of a pointer, a slice or a map: one that was decoded before from the
// same bytes for the same type, if that is still in use, or a new one.
func (w *structWorker) target(f *field, i uint32) (value, bool) {
	t := &w.tokens.All[i]
	if f.kind == kindSlice && t.Kind != wire.Array || f.kind == kindMap && t.Kind != wire.Object {
		return value{}, false
	}
	if w.sharing != ShareAll || t.End-t.Begin > maxShared || f.elem.selfWriting ||
		f.elem.size == 0 || t.End-t.Begin == 2 {
		return w.build(f, i)
	}
	s := &w.stats[f.stats]
	if !w.tries(s) {
		return w.build(f, i)
	}
	v, h, kept := w.decoded(s, f.space, w.raw(t))
	switch {
	case v.at != nil:
		w.expected.expect(w.tokens.Text(), t, w.found)
		return v, true
	case !kept:
		return w.build(f, i)
	}
	own := w.copied(t)
	outer := w.enter(own, t.Strings)
	v, ok := w.build(f, i)
	if ok && !w.unshared {
		w.keep(h, f.space, stringOf(own.data), v, w.size)
	}
	w.leave(outer)
	return v, ok
}

func (w *structWorker) build(f *field, i uint32) (v value, ok bool) {
	i = w.tokens.Open(i)
	if f.kind == kindMap {
		return w.newMap(f.elem, i)
	}
	l, n := f.elem, 1
	if f.kind == kindSlice {
		if n = int(w.tokens.All[i].N); n == 0 {
			return emptySlice, true
		}
	}
	w.size += n * int(l.size)
	v = value{w.make(l, n), n}
	w.unshared = w.unshared || l.selfWriting
	if f.kind == kindPointer {
		return v, w.element(f, i, v.at)
	}
	offset := uintptr(0) // no pointer goes behind the last element
	for k := i + 1; k < w.tokens.All[i].Next; k = w.tokens.All[k].Next {
		if !w.element(f, k, unsafe.Add(v.at, offset)) {
			return v, false
		}
		offset += l.size
	}
	return v, true
}

// element decodes an element of a slice, or the value that a pointer points to.
func (w *structWorker) element(f *field, i uint32, to unsafe.Pointer) bool {
	if f.elem.kind == kindString {
		return w.text(f.inner, &w.tokens.All[i], (*string)(to))
	}
	return w.value(&f.elem.self, i, to)
}

// newMap decodes a map. Strings in a map have no address, so they cannot be assigned later.
// They point into a copy, unless one of them would keep too much with it then.
func (w *structWorker) newMap(l *layout, i uint32) (value, bool) {
	t := &w.tokens.All[i]
	source, owned := w.source, w.owned
	if !owned && t.End-t.Begin <= maxShared {
		w.source, w.owned = w.copied(t), true
	}
	w.size += mapOverhead + int(t.N)*int(l.typ.Key().Size()+l.typ.Elem().Size())
	var at unsafe.Pointer
	var ok bool
	if l.maps == mapOfStrings {
		at, ok = w.stringMap(i)
	} else {
		at, ok = w.otherMap(l, i)
	}
	w.source, w.owned = source, owned
	return value{at, 1}, ok
}

// stringMap decodes a map of strings to strings, of types with any names.
func (w *structWorker) stringMap(i uint32) (unsafe.Pointer, bool) {
	all := w.tokens.All
	m := make(map[string]string, all[i].N)
	for k := i + 1; k < all[i].Next; k = all[k+1].Next {
		name, value := &all[k], &all[k+1]
		if !value.IsText() && value.Kind != wire.Null {
			return nil, false
		}
		key := w.keepText(name, w.content(name))
		m[key] = ""
		if value.IsText() {
			m[key] = w.keepText(value, w.content(value))
		}
		w.size += len(key) + len(m[key])
	}
	return mapAt(m), true
}

// otherMap decodes a map of any other type, by reflection. Of entries with one key, the last
// counts.
func (w *structWorker) otherMap(l *layout, i uint32) (unsafe.Pointer, bool) {
	all := w.tokens.All
	e := w.allocators[l.index].takeEntry(l.typ)
	made := reflect.MakeMapWithSize(l.typ, int(all[i].N))
	ok := true
	for k := i + 1; ok && k < all[i].Next; k = all[k+1].Next {
		name := &all[k]
		*(*string)(e.keyAt) = w.keepText(name, w.content(name))
		source, owned := w.source, w.owned
		if !owned {
			w.source, w.owned = w.copied(&all[k+1]), true
		}
		if ok = w.value(&l.elem.self, k+1, e.valueAt); ok {
			made.SetMapIndex(e.key, e.value)
		}
		w.source, w.owned = source, owned
		e.value.SetZero()
	}
	e.key.SetZero()
	e.busy = false
	return made.UnsafePointer(), ok
}
