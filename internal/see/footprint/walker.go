package footprint

import (
	"reflect"
	"unsafe"
)

// block is the memory that one pointer refers to.
type block struct {
	bytes   int
	objects int // how many refer to it
	last    int // the number of the last of them
}

// walker finds the memory that objects refer to.
type walker struct {
	object int // the number of the present one
	blocks map[unsafe.Pointer]*block
}

func (w *walker) add(object any) {
	w.object++
	w.walk(reflect.ValueOf(object))
}

// bytes returns the memory that exactly one object refers to, of all objects together, and the
// memory that several refer to.
func (w *walker) bytes() (own, shared int) {
	for _, b := range w.blocks {
		if b.objects == 1 {
			own += b.bytes
		} else {
			shared += b.bytes
		}
	}
	return own, shared
}

func allocated(size int) int {
	if size <= 32 {
		return (size + 7) &^ 7
	}
	return (size + 15) &^ 15
}

// visit counts a block. It reports whether the present object had not been there.
func (w *walker) visit(at unsafe.Pointer, bytes int) bool {
	if at == nil || bytes == 0 {
		return false
	}
	b := w.blocks[at]
	if b == nil {
		b = &block{}
		w.blocks[at] = b
	}
	b.bytes = max(b.bytes, allocated(bytes))
	if b.last == w.object {
		return false
	}
	b.last = w.object
	b.objects++
	return true
}

func (w *walker) walk(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if w.visit(v.UnsafePointer(), int(v.Type().Elem().Size())) {
			w.walk(v.Elem())
		}
	case reflect.Interface:
		w.walk(v.Elem())
	case reflect.Struct:
		for _, field := range v.Fields() {
			w.walk(field)
		}
	case reflect.Array:
		for i := range v.Len() {
			w.walk(v.Index(i))
		}
	case reflect.Slice:
		if w.visit(v.UnsafePointer(), v.Cap()*int(v.Type().Elem().Size())) && !isPlain(v.Type().Elem()) {
			for i := range v.Len() {
				w.walk(v.Index(i))
			}
		}
	case reflect.String:
		w.visit(unsafe.Pointer(unsafe.StringData(v.String())), v.Len())
	case reflect.Map:
		const group = 8 // slots that a map has at least
		entry := int(v.Type().Key().Size() + v.Type().Elem().Size())
		if w.visit(v.UnsafePointer(), 48+max(group, v.Len())*(entry+1)) {
			for key, value := range v.Seq2() {
				w.walk(key)
				w.walk(value)
			}
		}
	}
}

func isPlain(t reflect.Type) bool {
	return t.Kind() >= reflect.Bool && t.Kind() <= reflect.Complex128
}
