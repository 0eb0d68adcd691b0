package dedup

import (
	"maps"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// sizeOfMap is about the memory of a map of n entries.
func sizeOfMap(n int, entry uintptr) int { return sizeMap + (n+7)/8*8*(int(entry)+1) }

func (h *hasher) mapping(l *layout, v value) uint64 {
	switch l.maps {
	case mapOfStrings:
		return hashEntries(h, mapOf[string](v), h.sized)
	case mapOfQuantities:
		return hashEntries(h, mapOf[resource.Quantity](v), h.quantity)
	}
	return h.otherMap(l, v.reflected(l.typ))
}

// hashEntries hashes a map with strings as keys, given the hash of its values.
func hashEntries[V any](h *hasher, m map[string]V, hash func(V) uint64) uint64 {
	var v V
	h.size += sizeOfMap(len(m), sizeString+unsafe.Sizeof(v))
	var sum uint64
	for key, v := range m {
		sum += h.mix(h.sized(key), hash(v))
	}
	return h.mix(sum, uint64(len(m)))
}

func (h *hasher) quantity(q resource.Quantity) uint64 {
	b := quantityOf(&q)
	h.failed = h.failed || b.number != nil
	x := h.mix(h.mix(h.sized(b.text), uint64(b.value)), uint64(b.scale))
	return h.mix(x, h.text(b.format))
}

func (h *hasher) otherMap(l *layout, m reflect.Value) uint64 {
	if !l.comparableMap() {
		h.failed = true
		return 0
	}
	h.size += sizeOfMap(m.Len(), l.elem.size+l.typ.Key().Size())
	var sum uint64
	elem := reflect.New(l.elem.typ)
	for it := m.MapRange(); it.Next() && !h.failed; {
		elem.Elem().SetIterValue(it)
		sum += h.mix(h.text(it.Key().String()), h.fields(l.elem, elem.UnsafePointer(), 3))
	}
	return h.mix(sum, uint64(m.Len()))
}

// comparableMap reports whether maps of a type can be compared. API types have strings as
// keys, and others are left alone.
func (l *layout) comparableMap() bool {
	return l.typ.Key().Kind() == reflect.String && l.elem.opaque == nil && !l.elem.selfWriting
}

func equalMaps(l *layout, a, b value) bool {
	switch l.maps {
	case mapOfStrings:
		return maps.Equal(mapOf[string](a), mapOf[string](b))
	case mapOfQuantities:
		return maps.EqualFunc(mapOf[resource.Quantity](a), mapOf[resource.Quantity](b),
			func(x, y resource.Quantity) bool {
				p, q := quantityOf(&x), quantityOf(&y)
				return p.number == nil && *p == *q
			})
	}
	return equalOtherMaps(l, a.reflected(l.typ), b.reflected(l.typ))
}

func equalOtherMaps(l *layout, a, b reflect.Value) bool {
	if a.Len() != b.Len() || !l.comparableMap() {
		return false
	}
	x, y := reflect.New(l.elem.typ), reflect.New(l.elem.typ)
	for it := a.MapRange(); it.Next(); {
		other := b.MapIndex(it.Key())
		if !other.IsValid() {
			return false
		}
		x.Elem().SetIterValue(it)
		y.Elem().Set(other)
		if !equalFields(l.elem, x.UnsafePointer(), y.UnsafePointer()) {
			return false
		}
	}
	return true
}

// cloneEntries copies a map with strings as keys, whose fieldStats are given.
func cloneEntries[V any](w *shareWorker, keys int32, v value, clone func(string, V) V) value {
	m := mapOf[V](v)
	copied := make(map[string]V, len(m))
	for key, x := range m {
		copied[w.cloneText(keys, key)] = clone(key, x)
	}
	return value{mapAt(copied), 1}
}

// cloneMap returns a copy of a map that has nothing in common with it but data that must not be
// written to.
func (w *shareWorker) cloneMap(f *field, v value) value {
	l := f.elem
	switch l.maps {
	case mapOfStrings:
		return cloneEntries(w, f.inner, v, func(_, text string) string {
			return w.cloneText(f.inner, text)
		})
	case mapOfQuantities:
		return cloneEntries(w, f.inner, v, func(_ string, q resource.Quantity) resource.Quantity {
			b := quantityOf(&q)
			b.text, b.format = strings.Clone(b.text), w.cloneText(f.inner, b.format)
			return q
		})
	}
	m := v.reflected(l.typ)
	clone := reflect.MakeMapWithSize(l.typ, m.Len())
	for it := m.MapRange(); it.Next(); {
		key, elem := reflect.New(l.typ.Key()).Elem(), reflect.New(l.elem.typ)
		key.SetString(w.cloneText(f.inner, it.Key().String()))
		elem.Elem().SetIterValue(it)
		w.separate(l.elem, elem.UnsafePointer())
		clone.SetMapIndex(key, elem.Elem())
	}
	return value{clone.UnsafePointer(), 1}
}
