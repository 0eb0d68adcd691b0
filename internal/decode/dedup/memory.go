package dedup

import (
	"reflect"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// This file holds everything that the package assumes about the layout of values in memory.
// TestLayouts checks it: the fields, their order and their sizes.

// sliceHeader is the layout of a slice.
type sliceHeader struct {
	data     unsafe.Pointer
	len, cap int
}

// eface is the layout of an interface without methods: its dynamic type, and a pointer to
// the value, or the value itself if that is a pointer, as a map is.
type eface struct{ typ, data unsafe.Pointer }

func efaceOf(v any) eface { return *(*eface)(unsafe.Pointer(&v)) }

func (e eface) any() any { return *(*any)(unsafe.Pointer(&e)) }

// The dynamic types of the values that JSON decodes to.
var (
	stringType  = efaceOf("").typ
	int64Type   = efaceOf(int64(0)).typ
	float64Type = efaceOf(float64(0)).typ
	objectType  = efaceOf(map[string]any(nil)).typ
	arrayType   = efaceOf([]any(nil)).typ
)

// boxed returns an interface that holds the string at s, which must not be written to.
func boxed(s *string) any { return eface{stringType, unsafe.Pointer(s)}.any() }

// quantityBits is the layout of a Quantity.
type quantityBits struct {
	value  int64
	scale  int32
	number unsafe.Pointer
	text   string
	format string
}

// fieldsAreBytes reports whether the layout of a FieldsV1 is that of its only field, a []byte. With
// the build tag fieldsv1string, it is a handle to a string.
var fieldsAreBytes = fieldsType.Field(0).Type == reflect.TypeFor[[]byte]()

func quantityOf(q *resource.Quantity) *quantityBits { return (*quantityBits)(unsafe.Pointer(q)) }

// A value is the target of a field: one value, the n elements of a slice, a map, or the n bytes
// of a string.
type value struct {
	at unsafe.Pointer
	n  int
}

// emptySlice is the target of a slice without elements that is not nil.
var emptySlice = value{at: unsafe.Pointer(new(struct{}))}

func load(k kind, p unsafe.Pointer) value {
	if k == kindSlice {
		h := (*sliceHeader)(p)
		return value{h.data, h.len}
	}
	return value{*(*unsafe.Pointer)(p), 1}
}

// store sets a pointer, a slice, a map or a string at p to its target. A slice ends there.
func store(k kind, p unsafe.Pointer, v value) {
	switch k {
	case kindSlice:
		*(*sliceHeader)(p) = sliceHeader{v.at, v.n, v.n}
	case kindString:
		*(*string)(p) = unsafe.String((*byte)(v.at), v.n)
	default:
		*(*unsafe.Pointer)(p) = v.at
	}
}

// mapOf returns the map at v as one of other types with the same layout: neither that nor
// the hash of keys depends on the names of types.
func mapOf[V any](v value) map[string]V { return *(*map[string]V)(unsafe.Pointer(&v.at)) }

func mapAt[V any](m map[string]V) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&m)) }

// reflected returns the map at v, of a type that only package reflect knows.
func (v value) reflected(t reflect.Type) reflect.Value {
	return reflect.NewAt(t, unsafe.Pointer(&v.at)).Elem()
}

func listOf(v value) []any { return unsafe.Slice((*any)(v.at), v.n) }

func objectAt(m map[string]any) value { return value{mapAt(m), 1} }

func listAt(list []any) value { return value{unsafe.Pointer(unsafe.SliceData(list)), len(list)} }

// bytesOf returns the bytes of a string, which must not be written to.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// exactCopy returns a copy of a list without spare capacity.
func exactCopy[E any](list []E) []E { return append(make([]E, 0, len(list)), list...) }

// stringOf returns a string that has the same memory as b.
func stringOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bitsAt returns up to 8 bytes as a number.
func bitsAt(p unsafe.Pointer, n uintptr) (x uint64) {
	switch n {
	case 8:
		return *(*uint64)(p)
	case 4:
		return uint64(*(*uint32)(p))
	case 1:
		return uint64(*(*uint8)(p))
	}
	for i := range n {
		x |= uint64(*(*uint8)(unsafe.Add(p, i))) << (8 * i)
	}
	return x
}

// setBits sets n bytes, a number of 1, 2, 4 or 8, to the lowest ones of x.
func setBits(p unsafe.Pointer, n uintptr, x uint64) {
	switch n {
	case 1:
		*(*uint8)(p) = uint8(x)
	case 2:
		*(*uint16)(p) = uint16(x)
	case 4:
		*(*uint32)(p) = uint32(x)
	default:
		*(*uint64)(p) = x
	}
}

// newNumber returns the address of a number of 1, 2, 4 or 8 bytes.
func newNumber(size uintptr, bits uint64) unsafe.Pointer {
	switch size {
	case 1:
		return unsafe.Pointer(new(uint8(bits)))
	case 2:
		return unsafe.Pointer(new(uint16(bits)))
	case 4:
		return unsafe.Pointer(new(uint32(bits)))
	default:
		return unsafe.Pointer(new(bits))
	}
}

// An allocator makes and copies values of one type. Package reflect allocates and moves
// them, so that the garbage collector knows their pointers. To grow a slice is the one way
// in which reflect allocates values and nothing else.
type allocator struct {
	to, from             reflect.Value
	toHeader, fromHeader *sliceHeader
	entry                *mapEntry // where entries of maps of the type are put together
}

func (a *allocator) prepare(t reflect.Type) {
	if a.toHeader == nil {
		slice := reflect.SliceOf(t)
		to, from := reflect.New(slice), reflect.New(slice)
		a.to, a.from = to.Elem(), from.Elem()
		a.toHeader = (*sliceHeader)(to.UnsafePointer())
		a.fromHeader = (*sliceHeader)(from.UnsafePointer())
	}
}

func (a *allocator) make(t reflect.Type, n int) unsafe.Pointer {
	a.prepare(t)
	a.to.Grow(n)
	at := a.toHeader.data
	*a.toHeader = sliceHeader{}
	return at
}

func (a *allocator) copy(t reflect.Type, v value) unsafe.Pointer {
	a.prepare(t)
	a.to.Grow(v.n)
	a.toHeader.len = v.n
	*a.fromHeader = sliceHeader{v.at, v.n, v.n}
	reflect.Copy(a.to, a.from)
	at := a.toHeader.data
	*a.toHeader, *a.fromHeader = sliceHeader{}, sliceHeader{}
	return at
}
