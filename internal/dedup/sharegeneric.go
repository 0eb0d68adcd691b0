package dedup

import (
	"maps"
	"math"
	"strings"
	"unsafe"
)

// This file shares generic values, as JSON is decoded to: maps and slices of any. They are
// shared like the values of Go types, as a whole or by their parts. Their fieldStats are
// those of the name of the field in which they stand.

// anyObject and anyArray are fields with an object and an array, under any name.
var anyObject, anyArray = field{kind: kindObject}, field{kind: kindArray}

// sizeOfEntry is the size of an entry of an object.
const sizeOfEntry = sizeString + sizeAny

func (h *hasher) array(list []any) uint64 {
	h.size += sizeAny*len(list) + sizeArray
	x := uint64(len(list))
	for i := range list {
		x = h.mix(x, h.generic(list[i]))
	}
	return x
}

// generic hashes a generic value. Numbers are compared by their bits.
func (h *hasher) generic(x any) uint64 {
	switch x := x.(type) {
	case nil:
		return 10
	case string:
		h.size += sizeAny
		return h.mix(h.sized(x), 11)
	case bool:
		if x {
			return 12
		}
		return 13
	case int64:
		h.size += sizeNumber
		return h.mix(uint64(x), 14)
	case float64:
		h.size += sizeNumber
		return h.mix(math.Float64bits(x), 15)
	case map[string]any:
		return h.mix(h.value(&anyObject, objectAt(x)), 16)
	case []any:
		return h.mix(h.value(&anyArray, listAt(x)), 17)
	}
	h.failed = true
	return 0
}

// equalGeneric reports whether two generic values are the same.
func equalGeneric(a, b any) bool {
	switch a := a.(type) {
	case nil, string, bool, int64:
		return a == b
	case float64:
		b, ok := b.(float64)
		return ok && math.Float64bits(a) == math.Float64bits(b)
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && equalValues(&anyObject, objectAt(a), objectAt(b))
	case []any:
		b, ok := b.([]any)
		return ok && equalValues(&anyArray, listAt(a), listAt(b))
	}
	return false
}

func equalArrays(a, b []any) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !equalGeneric(a[i], b[i]) {
			return false
		}
	}
	return true
}

// genericField returns the field for objects, or arrays, under a name.
func (w *shareWorker) genericField(kind kind, name string) *field {
	i := mix(bytesOf(name)) >> 56
	if kind == kindArray {
		i += fieldNames
	}
	return &w.plan.generic[i]
}

// generic returns the replacement of a value under a name, and whether that is another
// one than x. If clone is set, it has nothing in common with x that can be written to.
func (w *shareWorker) generic(x any, name string, clone bool) (any, bool) {
	switch x := x.(type) {
	case string:
		if len(x) == 0 {
			return x, false
		}
		shared, ok := w.text(w.genericField(kindObject, name).inner, x)
		switch {
		case ok && unsafe.StringData(shared) != unsafe.StringData(x):
			w.saved += len(x)
			return shared, true
		case !ok && clone:
			return strings.Clone(x), true
		}
	case map[string]any:
		if x == nil || !clone && (len(x) == 0 || w.tooDeep()) {
			return x, false
		}
		if len(x) > 0 {
			if v, ok := w.whole(w.genericField(kindObject, name), objectAt(x)); ok {
				return mapOf[any](v), true
			}
		}
		if clone {
			return w.cloneObject(x), true
		}
		return w.objectParts(x)
	case []any:
		if x == nil || !clone && (len(x) == 0 || w.tooDeep()) {
			return x, false
		}
		if len(x) > 0 {
			if v, ok := w.whole(w.genericField(kindArray, name), listAt(x)); ok {
				return listOf(v), true
			}
		}
		if clone {
			return w.cloneArray(x, name), true
		}
		return w.arrayParts(x, name)
	}
	return x, false
}

// objectParts returns a copy of a map with shared parts, if that is worth it, and otherwise
// the map.
func (w *shareWorker) objectParts(m map[string]any) (map[string]any, bool) {
	w.depth++
	size := sizeOfMap(len(m), sizeOfEntry)
	before := w.search(size)
	var changed map[string]any
	for key, x := range m {
		if y, ok := w.generic(x, key, false); ok {
			if changed == nil {
				changed = maps.Clone(m)
			}
			changed[key] = y
		}
	}
	w.depth--
	if !w.worthwhile(before, changed != nil, size) {
		return m, false
	}
	return changed, true
}

// arrayParts is objectParts for a slice.
func (w *shareWorker) arrayParts(list []any, name string) ([]any, bool) {
	w.depth++
	before := w.search(0)
	var changed []any
	for i := range list {
		if y, ok := w.generic(list[i], name, false); ok {
			if changed == nil {
				changed = append(make([]any, 0, len(list)), list...)
			}
			changed[i] = y
		}
	}
	w.depth--
	if !w.worthwhile(before, changed != nil, sizeAny*len(list)) {
		return list, false
	}
	return changed, true
}

// cloneObject returns a copy of a map with keys and values of its own.
func (w *shareWorker) cloneObject(m map[string]any) map[string]any {
	w.depth++
	keys := w.genericField(kindObject, "").inner
	v := cloneEntries(w, keys, objectAt(m), func(key string, x any) any {
		x, _ = w.generic(x, key, true)
		return x
	})
	w.depth--
	return mapOf[any](v)
}

// cloneArray is cloneObject for a slice.
func (w *shareWorker) cloneArray(list []any, name string) []any {
	w.depth++
	clone := make([]any, len(list))
	for i := range list {
		clone[i], _ = w.generic(list[i], name, true)
	}
	w.depth--
	return clone
}
