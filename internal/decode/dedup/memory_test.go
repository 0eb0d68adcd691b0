package dedup

import (
	"reflect"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestLayouts checks the assumptions of memory.go about the layout of values.
func TestLayouts(t *testing.T) {
	list := make([]any, 2, 5)
	h := *(*sliceHeader)(unsafe.Pointer(&list))
	if unsafe.Sizeof(list) != unsafe.Sizeof(h) || h.data != unsafe.Pointer(&list[0]) || h.len != 2 ||
		h.cap != 5 {
		t.Errorf("a slice of length 2 and capacity 5 is %+v", h)
	}
	s, m := "content", map[string]any{"a": 1}
	for _, v := range []any{s, m, list, &s} {
		e := efaceOf(v)
		if unsafe.Sizeof(v) != unsafe.Sizeof(e) || !reflect.DeepEqual(e.any(), v) {
			t.Errorf("%v is %v in an interface", v, e.any())
		}
	}
	if efaceOf(m).data != mapAt(m) || reflect.ValueOf(m).UnsafePointer() != mapAt(m) ||
		unsafe.Sizeof(m) != unsafe.Sizeof(mapAt(m)) {
		t.Error("a map is not a pointer")
	}
	if *(*string)(efaceOf(s).data) != s || boxed(&s) != any(s) {
		t.Error("an interface with a string is not a pointer to it")
	}
	if efaceOf(&s).data != unsafe.Pointer(&s) {
		t.Error("an interface with a pointer is not the pointer")
	}
	type key string
	named := map[key]string{"a": "b"}
	if got := mapOf[string](value{reflect.ValueOf(named).UnsafePointer(), 1}); got["a"] != "b" {
		t.Errorf("%v read as a map of other names is %v", named, got)
	}

	if fieldsAreBytes != (fieldsType.Size() == unsafe.Sizeof(h)) || fieldsType.NumField() != 1 {
		t.Errorf("a FieldsV1 has %d bytes in %d fields", fieldsType.Size(), fieldsType.NumField())
	}
	quantity, bits := reflect.TypeFor[resource.Quantity](), reflect.TypeFor[quantityBits]()
	if quantity.Size() != bits.Size() {
		t.Fatalf("a Quantity has %d bytes", quantity.Size())
	}
	var leaves []reflect.StructField
	for f := range quantity.Fields() {
		leaves = append(leaves, leavesOf(f)...)
	}
	for i := range bits.NumField() {
		want, got := bits.Field(i), leaves[i]
		same := got.Type.Kind() == want.Type.Kind() ||
			got.Type.Kind() == reflect.Pointer && want.Type.Kind() == reflect.UnsafePointer
		if !same || got.Offset != want.Offset || got.Type.Size() != want.Type.Size() {
			t.Errorf("field %d of a Quantity is %v %v at %d, not %v at %d",
				i, got.Name, got.Type, got.Offset, want.Type, want.Offset)
		}
	}
	if len(leaves) != bits.NumField() {
		t.Errorf("a Quantity has %d fields", len(leaves))
	}
}

// leavesOf returns a field, or those of the struct that it is.
func leavesOf(f reflect.StructField) []reflect.StructField {
	if f.Type.Kind() != reflect.Struct {
		return []reflect.StructField{f}
	}
	var leaves []reflect.StructField
	for inner := range f.Type.Fields() {
		inner.Offset += f.Offset
		leaves = append(leaves, leavesOf(inner)...)
	}
	return leaves
}
