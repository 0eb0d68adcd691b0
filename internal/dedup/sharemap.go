package dedup

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// sizeOfMap is about the memory of a map of n entries.
func sizeOfMap(n int, entry uintptr) int { return sizeMap + (n+7)/8*8*(int(entry)+1) }

// mapping hashes a map.
func (h *hasher) mapping(l *layout, v value) uint64 {
	switch l.maps {
	case mapOfStrings:
		m := mapOf[string](v)
		h.size += sizeOfMap(len(m), 2*sizeString)
		var sum uint64
		for key, text := range m {
			h.size += len(key) + len(text)
			sum += h.mix(h.text(key), h.text(text))
		}
		return h.mix(sum, uint64(len(m)))
	case mapOfQuantities:
		m := mapOf[resource.Quantity](v)
		h.size += sizeOfMap(len(m), sizeString+unsafe.Sizeof(quantityBits{}))
		var sum uint64
		for key, q := range m {
			b := quantityOf(&q)
			if b.number != nil {
				h.failed = true
				return 0
			}
			h.size += len(key) + len(b.text)
			x := h.mix(h.mix(h.text(key), uint64(b.value)), uint64(b.scale))
			sum += h.mix(x, h.text(b.text)^h.text(b.format)<<1)
		}
		return h.mix(sum, uint64(len(m)))
	}
	return h.otherMap(l, v.reflected(l.typ))
}

// otherMap hashes a map through package reflect.
func (h *hasher) otherMap(l *layout, m reflect.Value) uint64 {
	if !comparableMaps(l) {
		h.failed = true
		return 0
	}
	h.size += sizeOfMap(m.Len(), l.elem.size+l.typ.Key().Size())
	var sum uint64
	elem := reflect.New(l.elem.typ)
	for it := m.MapRange(); it.Next() && !h.failed; {
		elem.Elem().SetIterValue(it)
		sum += h.mix(h.mapKey(it.Key()), h.fields(l.elem, elem.UnsafePointer(), 3))
	}
	return h.mix(sum, uint64(m.Len()))
}

// comparableMaps reports whether maps of a type can be compared: keys are equal if their bits
// are, which is not so for floating point numbers.
func comparableMaps(l *layout) bool {
	k := l.typ.Key().Kind()
	bits := k == reflect.String || k == reflect.Bool || k >= reflect.Int && k <= reflect.Uint64
	return bits && l.elem.opaque == nil && !l.elem.quantities
}

func (h *hasher) mapKey(k reflect.Value) uint64 {
	switch {
	case k.Kind() == reflect.String:
		return h.text(k.String())
	case k.CanInt():
		return h.mix(uint64(k.Int()), 5)
	case k.CanUint():
		return h.mix(k.Uint(), 5)
	}
	return maphash.Comparable(h.seed, k.Bool())
}

func equalMaps(l *layout, a, b value) bool {
	switch l.maps {
	case mapOfStrings:
		return equalBy(mapOf[string](a), mapOf[string](b), func(x, y string) bool { return x == y })
	case mapOfQuantities:
		return equalBy(mapOf[resource.Quantity](a), mapOf[resource.Quantity](b), equalQuantities)
	}
	return equalOtherMaps(l, a.reflected(l.typ), b.reflected(l.typ))
}

func equalQuantities(x, y resource.Quantity) bool {
	p, q := quantityOf(&x), quantityOf(&y)
	return p.number == nil && *p == *q
}

func equalBy[V any](a, b map[string]V, equal func(V, V) bool) bool {
	if len(a) != len(b) {
		return false
	}
	if mapAt(a) == mapAt(b) {
		return true
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !equal(x, y) {
			return false
		}
	}
	return true
}

func equalOtherMaps(l *layout, a, b reflect.Value) bool {
	if a.Len() != b.Len() || !comparableMaps(l) {
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

// cloneMap returns a copy of a map that has nothing in common with it but what must not be
// written to.
func (w *shareWorker) cloneMap(f *field, v value) value {
	l := f.elem
	switch l.maps {
	case mapOfStrings:
		m := mapOf[string](v)
		clone := make(map[string]string, len(m))
		for key, text := range m {
			clone[w.cloneText(f.inner, key)] = w.cloneText(f.inner, text)
		}
		return value{mapAt(clone), 1}
	case mapOfQuantities:
		m := mapOf[resource.Quantity](v)
		clone := make(map[string]resource.Quantity, len(m))
		for key, q := range m {
			b := quantityOf(&q)
			b.text, b.format = strings.Clone(b.text), w.cloneText(f.inner, b.format)
			clone[w.cloneText(f.inner, key)] = q
		}
		return value{mapAt(clone), 1}
	}
	m := v.reflected(l.typ)
	clone := reflect.MakeMapWithSize(l.typ, m.Len())
	for it := m.MapRange(); it.Next(); {
		key, elem := reflect.New(l.typ.Key()).Elem(), reflect.New(l.elem.typ)
		key.SetIterKey(it)
		if key.Kind() == reflect.String {
			key.SetString(w.cloneText(f.inner, key.String()))
		}
		elem.Elem().SetIterValue(it)
		w.separate(l.elem, elem.UnsafePointer())
		clone.SetMapIndex(key, elem.Elem())
	}
	return value{clone.UnsafePointer(), 1}
}
