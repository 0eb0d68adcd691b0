package dedup

import (
	"hash/maphash"
	"reflect"
	"strings"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// mapKind says of which kind a map is. All but the last have keys that are strings.
type mapKind uint8

const (
	mapOfStrings    mapKind = iota // to strings
	mapOfQuantities                // to Quantity
	mapOfBytes                     // to []byte
	mapOfOthers                    // any keys without pointers or strings, to values that can be compared
)

// mapping makes a step of a map.
func (c *shareCompiler) mapping(s *step, t reflect.Type) (err error) {
	s.site, s.inner, s.shape, s.typ, s.kind = c.site(), c.site(), c.shape(t), t, stepMap
	if t == treeType {
		s.kind = stepTree
		c.treeSteps()
		return nil
	}
	if s.elem, err = c.layout(t.Elem()); err != nil {
		return err
	}
	elem := t.Elem()
	switch {
	case t.Key().Kind() != reflect.String:
		s.maps = mapOfOthers
	case elem.Kind() == reflect.String:
		s.maps = mapOfStrings
	case elem == quantityType:
		s.maps = mapOfQuantities
	case elem.Kind() == reflect.Slice && elem.Elem().Kind() == reflect.Uint8:
		s.maps = mapOfBytes
	default:
		s.maps = mapOfOthers
	}
	return nil
}

// The layout of a map does not depend on the names of its types, nor does the hash of
// its keys, so that a map can be read and written as one of these.
func (v value) strings() map[string]string { return *(*map[string]string)(unsafe.Pointer(&v.at)) }
func (v value) bytes() map[string][]byte   { return *(*map[string][]byte)(unsafe.Pointer(&v.at)) }
func (v value) quantities() map[string]resource.Quantity {
	return *(*map[string]resource.Quantity)(unsafe.Pointer(&v.at))
}

// mapAt returns the address of a map.
func mapAt[K comparable, V any](m map[K]V) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&m))
}

// other returns the map of a type that is known to package reflect alone.
func (v value) other(t reflect.Type) reflect.Value {
	return reflect.NewAt(t, unsafe.Pointer(&v.at)).Elem()
}

// sizeOfMap is about what a map of n entries takes.
func sizeOfMap(n int, entry uintptr) int { return 48 + (n+7)/8*8*(int(entry)+1) }

// A quantityBits is a Quantity as it lies in memory.
type quantityBits struct {
	value  int64
	scale  int32
	number unsafe.Pointer
	text   string
	format string
}

// The layout that is relied on: the build fails where it is another one.
var _ = [1]struct{}{}[unsafe.Sizeof(resource.Quantity{})-unsafe.Sizeof(quantityBits{})]

func quantityOf(q *resource.Quantity) *quantityBits { return (*quantityBits)(unsafe.Pointer(q)) }

// mapping hashes a map: the order of its entries does not matter.
func (h *hasher) mapping(s *step, v value) uint64 {
	var sum uint64
	switch s.maps {
	case mapOfStrings:
		m := v.strings()
		h.size += sizeOfMap(len(m), 32)
		for key, text := range m {
			h.size += len(key) + len(text)
			sum += h.mix(h.text(key), h.text(text))
		}
		return h.mix(sum, uint64(len(m)))
	case mapOfQuantities:
		m := v.quantities()
		h.size += sizeOfMap(len(m), 16+unsafe.Sizeof(quantityBits{}))
		for key, q := range m {
			b := quantityOf(&q)
			if b.number != nil {
				h.failed = true
				return 0
			}
			h.size += len(key) + len(b.text)
			x := h.mix(h.text(key), uint64(b.value))
			sum += h.mix(h.mix(x, uint64(b.scale)), h.text(b.text)^h.text(b.format)<<1)
		}
		return h.mix(sum, uint64(len(m)))
	case mapOfBytes:
		m := v.bytes()
		h.size += sizeOfMap(len(m), 40)
		for key, b := range m {
			h.size += len(key) + len(b)
			x := h.text(unsafe.String(unsafe.SliceData(b), len(b)))
			if b == nil {
				x = 1
			}
			sum += h.mix(h.text(key), x)
		}
		return h.mix(sum, uint64(len(m)))
	}
	return h.otherMap(s, v.other(s.typ))
}

// otherMap hashes a map through package reflect.
func (h *hasher) otherMap(s *step, m reflect.Value) uint64 {
	l := s.elem
	if l.opaque != nil || l.quantities || !comparedByBits(s.typ.Key()) {
		h.failed = true
		return 0
	}
	h.size += sizeOfMap(m.Len(), l.size+s.typ.Key().Size())
	var sum uint64
	elem := reflect.New(l.typ)
	for it := m.MapRange(); it.Next() && !h.failed; {
		elem.Elem().SetIterValue(it)
		sum += h.mix(h.key2(it.Key()), h.block(l, elem.UnsafePointer(), 3))
	}
	return h.mix(sum, uint64(m.Len()))
}

// comparedByBits reports whether keys of a type are equal if their bits are; those of
// floating point numbers are not.
func comparedByBits(t reflect.Type) bool {
	k := t.Kind()
	return k == reflect.String || k == reflect.Bool || k >= reflect.Int && k <= reflect.Uint64
}

func (h *hasher) key2(k reflect.Value) uint64 {
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

func equalMaps(s *step, a, b value) bool {
	switch s.maps {
	case mapOfStrings:
		return equalBy(a.strings(), b.strings(), func(x, y string) bool { return x == y })
	case mapOfQuantities:
		return equalBy(a.quantities(), b.quantities(), func(x, y resource.Quantity) bool {
			p, q := quantityOf(&x), quantityOf(&y)
			return p.number == nil && q.number == nil && p.value == q.value && p.scale == q.scale && p.text == q.text && p.format == q.format
		})
	case mapOfBytes:
		return equalBy(a.bytes(), b.bytes(), func(x, y []byte) bool { return (x == nil) == (y == nil) && string(x) == string(y) })
	}
	return equalOtherMaps(s, a.other(s.typ), b.other(s.typ))
}

func equalBy[V any](a, b map[string]V, equal func(V, V) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for key, x := range a {
		if y, ok := b[key]; !ok || !equal(x, y) {
			return false
		}
	}
	return true
}

func equalOtherMaps(s *step, a, b reflect.Value) bool {
	if a.Len() != b.Len() || s.elem.opaque != nil || s.elem.quantities || !comparedByBits(s.typ.Key()) {
		return false
	}
	x, y := reflect.New(s.elem.typ), reflect.New(s.elem.typ)
	for it := a.MapRange(); it.Next(); {
		other := b.MapIndex(it.Key())
		if !other.IsValid() {
			return false
		}
		x.Elem().SetIterValue(it)
		y.Elem().Set(other)
		if !equalBlocks(s.elem, x.UnsafePointer(), y.UnsafePointer()) {
			return false
		}
	}
	return true
}

// ownMap returns a copy of a map that has nothing in common with it but what must not
// be written to.
func (r *shareRun) ownMap(s *step, v value) value {
	switch s.maps {
	case mapOfStrings:
		m := v.strings()
		own := make(map[string]string, len(m))
		for key, text := range m {
			own[r.ownText(s.inner, key)] = r.ownText(s.inner, text)
		}
		return value{mapAt(own), 1}
	case mapOfQuantities:
		m := v.quantities()
		own := make(map[string]resource.Quantity, len(m))
		for key, q := range m {
			b := quantityOf(&q)
			b.text, b.format = strings.Clone(b.text), r.ownText(s.inner, b.format)
			own[r.ownText(s.inner, key)] = q
		}
		return value{mapAt(own), 1}
	case mapOfBytes:
		m := v.bytes()
		own := make(map[string][]byte, len(m))
		for key, b := range m {
			own[r.ownText(s.inner, key)] = cloneBytes(b)
		}
		return value{mapAt(own), 1}
	}
	m := v.other(s.typ)
	own := reflect.MakeMapWithSize(s.typ, m.Len())
	for it := m.MapRange(); it.Next(); {
		key, elem := reflect.New(s.typ.Key()).Elem(), reflect.New(s.elem.typ)
		key.SetIterKey(it)
		if key.Kind() == reflect.String {
			key.SetString(r.ownText(s.inner, key.String()))
		}
		elem.Elem().SetIterValue(it)
		r.ownBlock(s.elem, elem.UnsafePointer())
		own.SetMapIndex(key, elem.Elem())
	}
	return value{own.UnsafePointer(), 1}
}

// cloneBytes returns a copy with no room behind it.
func cloneBytes(b []byte) []byte {
	if b == nil {
		return nil
	}
	own := make([]byte, len(b))
	copy(own, b)
	return own
}
