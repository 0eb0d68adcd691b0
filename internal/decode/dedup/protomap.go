package dedup

import (
	"reflect"
	"unsafe"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// A mapEntry has the memory in which an entry of a map is put together.
type mapEntry struct {
	key, value     reflect.Value
	keyAt, valueAt unsafe.Pointer
	busy           bool
}

// takeEntry returns where to put an entry of a map of type t together. The caller ends with
// setting busy to false. A map in a value of a map of the same type gets another place.
func (a *allocator) takeEntry(t reflect.Type) *mapEntry {
	if a.entry != nil && !a.entry.busy {
		a.entry.busy = true
		return a.entry
	}
	key, value := reflect.New(t.Key()), reflect.New(t.Elem())
	a.entry = &mapEntry{
		key: key.Elem(), value: value.Elem(),
		keyAt: key.UnsafePointer(), valueAt: value.UnsafePointer(), busy: true,
	}
	return a.entry
}

// mapOverhead is about the memory of an empty map: its header and the control word of a group.
const mapOverhead = 56

// newMap decodes a map of at most n entries.
func (w *protoWorker) newMap(f *field, data []byte, n int) (at unsafe.Pointer, ok bool) {
	// Strings in a map have no address, so they cannot be assigned later. They point into a
	// copy, unless one of them would keep too much with it then.
	owned := w.owned
	if !owned && len(data) <= maxShared && f.elem.elem.kind != kindBytes {
		data = exactCopy(data)
		w.owned = true
	}
	w.size += mapOverhead + len(data)
	if f.elem.maps == mapOfStrings {
		at, ok = w.stringMap(f, data, n)
	} else {
		at, ok = w.otherMap(f, data, n)
	}
	w.owned = owned
	return at, ok
}

// mapField returns the key and the encoded value of a map entry. A missing value,
// as Go encodes nil, is the zero value.
func mapField(content []byte) (key, value []byte, ok bool) {
	if len(content) == 0 || content[0] != 1<<3|wire.BytesType {
		return nil, nil, false
	}
	start, end := wire.Span(content, 1)
	if end < 0 {
		return nil, nil, false
	}
	key = content[start:end:end]
	if end == len(content) {
		return key, nil, true
	}
	if content[end] != 2<<3|wire.BytesType {
		return nil, nil, false
	}
	start, end = wire.Span(content, end+1)
	if end != len(content) {
		return nil, nil, false
	}
	return key, content[start:end:end], true
}

// stringMap decodes a map of strings to strings, of types with any names.
func (w *protoWorker) stringMap(f *field, data []byte, n int) (unsafe.Pointer, bool) {
	m := make(map[string]string, n)
	width := tagWidth(f.tag)
	var content []byte
	for i := 0; i < len(data); {
		content, i = element(data, i, width)
		key, value, ok := mapField(content)
		if !ok {
			return nil, false
		}
		m[w.keepString(key)] = w.keepString(value)
	}
	w.size += 32 * len(m)
	return mapAt(m), true
}

// otherMap decodes a map of any other type, by reflection.
func (w *protoWorker) otherMap(f *field, data []byte, n int) (unsafe.Pointer, bool) {
	t := f.elem.typ
	e := w.allocators[f.elem.index].takeEntry(t)
	made := reflect.MakeMapWithSize(t, n)
	width := tagWidth(f.tag)
	var content []byte
	ok := true
	for i := 0; ok && i < len(data); {
		content, i = element(data, i, width)
		var key, value []byte
		if key, value, ok = mapField(content); !ok {
			break
		}
		*(*string)(e.keyAt) = w.keepString(key)
		if ok = w.mapValue(f.elem.elem, value, e.valueAt); ok {
			made.SetMapIndex(e.key, e.value)
		}
		e.value.SetZero()
	}
	e.key.SetZero()
	e.busy = false
	w.size += made.Len() * int(t.Key().Size()+t.Elem().Size())
	return made.UnsafePointer(), ok
}

func (w *protoWorker) mapValue(l *layout, data []byte, to unsafe.Pointer) bool {
	if l.kind == kindBytes {
		*(*[]byte)(to) = exactCopy(data)
		return true
	}
	owned := w.owned
	if !owned {
		data = exactCopy(data)
		w.owned = true
	}
	ok := w.message(l, data, to)
	w.owned = owned
	return ok
}
