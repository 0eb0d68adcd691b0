package dedup

import (
	"maps"
	"math"
	"strings"
	"unsafe"
)

// This file shares generic values, as JSON is decoded to: maps and slices of any. They are
// shared like the values of Go types, as a whole or by their parts. Their fieldStats are
// those of the name of the field in which they stand: see genericFields.

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

// genericName returns the number of a name in genericFields.
func genericName(name string) uint32 { return uint32(mix(bytesOf(name)) >> 56) }

// generic returns the replacement of a value under a name of that number, and whether that is
// another one than x. If clone is set, it has nothing in common with x that can be written to.
func (w *shareWorker) generic(x any, name uint32, clone bool) (any, bool) {
	switch x := x.(type) {
	case string:
		if len(x) == 0 {
			return x, false
		}
		shared, ok := w.text(w.plan.generic[name].inner, x)
		switch {
		case ok && unsafe.StringData(shared) != unsafe.StringData(x):
			w.saved += len(x)
			return shared, true
		case !ok && clone:
			return strings.Clone(x), true
		}
	case map[string]any:
		if v, ok := w.genericPart(&w.plan.generic[name], objectAt(x), len(x), clone); ok {
			return mapOf[any](v), true
		}
	case []any:
		v, ok := w.genericPart(&w.plan.generic[fieldNames+name], listAt(x), len(x), clone)
		if ok {
			return listOf(v), true
		}
	}
	return x, false
}

// genericPart is generic for an object or an array of n elements.
func (w *shareWorker) genericPart(f *field, v value, n int, clone bool) (value, bool) {
	if v.at == nil || !clone && (n == 0 || w.tooDeep()) {
		return v, false
	}
	if n > 0 {
		if other, ok := w.whole(f, v); ok {
			return other, true
		}
	}
	switch {
	case clone:
		return w.clone(f, v), true
	case f.kind == kindObject:
		return w.objectParts(v)
	}
	return w.arrayParts(f, v)
}

// objectParts returns a copy of a map with shared parts, if that is worth it, and otherwise
// the map.
func (w *shareWorker) objectParts(v value) (value, bool) {
	w.depth++
	m := mapOf[any](v)
	size := sizeOfMap(len(m), sizeOfEntry)
	before := w.search(size)
	var changed map[string]any
	for key, x := range m {
		if y, ok := w.generic(x, genericName(key), false); ok {
			if changed == nil {
				changed = maps.Clone(m)
			}
			changed[key] = y
		}
	}
	w.depth--
	if !w.worthwhile(before, changed != nil, size) {
		return v, false
	}
	return objectAt(changed), true
}

// arrayParts is objectParts for a slice.
func (w *shareWorker) arrayParts(f *field, v value) (value, bool) {
	w.depth++
	list := listOf(v)
	before := w.search(0)
	var changed []any
	for i := range list {
		if y, ok := w.generic(list[i], f.tag, false); ok {
			if changed == nil {
				changed = exactCopy(list)
			}
			changed[i] = y
		}
	}
	w.depth--
	if !w.worthwhile(before, changed != nil, sizeAny*len(list)) {
		return v, false
	}
	return listAt(changed), true
}
