package dedup

import (
	"reflect"
	"unsafe"
)

// A mapping says how a map with keys of strings is decoded.
type mapping struct {
	typ   reflect.Type
	plain bool      // map[string]string
	op    operation // of values: opString, opBytes or opMessage
	value *program  // of messages
	entry int       // index of the space for its entries
}

// entryScratch is where the entries of a map are put together.
type entryScratch struct {
	key, value     reflect.Value
	keyAt, valueAt unsafe.Pointer
	busy           bool
}

func newEntryScratch(t reflect.Type) entryScratch {
	key, value := reflect.New(t.Key()), reflect.New(t.Elem())
	return entryScratch{key: key.Elem(), value: value.Elem(), keyAt: key.UnsafePointer(), valueAt: value.UnsafePointer()}
}

// What a map takes, about: its header and the control word of a group.
const mapOverhead = 56

// newMap decodes a map of at most n entries.
func (r *run) newMap(f *field, data []byte, n int) (unsafe.Pointer, bool) {
	// Strings in a map have no address, so they cannot be set later. They point
	// into a copy, unless one of them would keep too much with it then.
	owned := r.owned
	if !owned && len(data) <= maxPiece && f.mapping.op != opBytes {
		data = append([]byte(nil), data...)
		r.owned = true
	}
	r.saves += mapOverhead
	var m reflect.Value
	var ok bool
	if f.mapping.plain {
		m, ok = r.plainMap(f, data, n)
	} else {
		m, ok = r.reflectedMap(f, data, n)
	}
	r.owned = owned
	if !ok {
		return nil, false
	}
	return m.UnsafePointer(), true
}

// entry returns the key and the encoded value of a map entry. A value that is not
// there, as one that is nil is not, is the zero value.
func entry(content []byte) (key, value []byte, ok bool) {
	if len(content) == 0 || content[0] != 1<<3|wireBytes {
		return nil, nil, false
	}
	start, end := span(content, 1)
	if end < 0 {
		return nil, nil, false
	}
	key = content[start:end:end]
	if end == len(content) {
		return key, nil, true
	}
	if content[end] != 2<<3|wireBytes {
		return nil, nil, false
	}
	start, end = span(content, end+1)
	if end != len(content) {
		return nil, nil, false
	}
	return key, content[start:end:end], true
}

func (r *run) plainMap(f *field, data []byte, n int) (reflect.Value, bool) {
	m := make(map[string]string, n)
	w := width(f.tag)
	var content []byte
	for i := 0; i < len(data); {
		content, i = element(data, i, w)
		key, value, ok := entry(content)
		if !ok {
			return reflect.Value{}, false
		}
		m[r.keep(key)] = r.keep(value)
	}
	r.saves += len(data) + 32*len(m)
	return reflect.ValueOf(m), true
}

// reflectedMap decodes a map of any other type. It needs reflection, but only for
// what is not shared.
func (r *run) reflectedMap(f *field, data []byte, n int) (reflect.Value, bool) {
	m := f.mapping
	s := &r.entries[m.entry]
	if s.busy { // a map in a value of a map of the same type
		return reflect.Value{}, false
	}
	s.busy = true
	made := reflect.MakeMapWithSize(m.typ, n)
	w := width(f.tag)
	var content []byte
	ok := true
	for i := 0; ok && i < len(data); {
		content, i = element(data, i, w)
		var key, value []byte
		if key, value, ok = entry(content); !ok {
			break
		}
		*(*string)(s.keyAt) = r.keep(key)
		if ok = r.mapValue(m, value, s.valueAt); ok {
			made.SetMapIndex(s.key, s.value)
		}
		s.value.SetZero()
	}
	s.key.SetZero()
	s.busy = false
	r.saves += len(data) + made.Len()*int(m.typ.Key().Size()+m.typ.Elem().Size())
	return made, ok
}

// mapValue decodes the value of a map entry.
func (r *run) mapValue(m *mapping, data []byte, to unsafe.Pointer) bool {
	switch m.op {
	case opString:
		*(*string)(to) = r.keep(data)
		return true
	case opBytes:
		*(*[]byte)(to) = append(make([]byte, 0, len(data)), data...)
		return true
	default:
		owned := r.owned
		if !owned {
			data = append([]byte(nil), data...)
			r.owned = true
		}
		ok := r.message(m.value, data, to)
		r.owned = owned
		return ok
	}
}
