package dedup

import (
	"reflect"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// A cut says how much a Go type has of an API type: everything, everything without some fields, or
// what a view declares.
type cut struct {
	drop fieldpath.Tree // the fields that are left out
	of   reflect.Type   // the API type of a view, or undeclared; nil if the Go type is the API type
}

// undeclared stands for an API type that has no Go type here.
var undeclared = reflect.TypeFor[struct{ undeclared struct{} }]()

// isPair reports whether there are two Go types: a view, and the API type that it is a view of.
func (c cut) isPair() bool { return c.of != nil && c.of != undeclared }

// to returns the cut of a part of a value. t is the type of the part in the view, of its API type.
func (c cut) to(t, of reflect.Type) cut {
	if c.of == undeclared {
		return c
	}
	if t == of {
		of = nil
	}
	return cut{of: of}
}

// elem returns the cut of the elements of a pointer, a slice or a map of type t.
func (c cut) elem(t reflect.Type) cut {
	if !c.isPair() {
		return c
	}
	return c.to(t.Elem(), c.of.Elem())
}

// api returns the API type of values of a Go type: that type itself, unless it is a view.
func (c cut) api(t reflect.Type) reflect.Type {
	if c.isPair() {
		return c.of
	}
	return t
}

// fields returns the fields of a struct type as JSON has them, each with its field of the API type.
func (c cut) fields(t reflect.Type) (fields []fieldpath.Pair) {
	if c.isPair() {
		return fieldpath.Pairs(t, c.of)
	}
	for _, f := range fieldpath.Fields(t) {
		fields = append(fields, fieldpath.Pair{View: f, API: f})
	}
	return fields
}

// variant returns the key of a Go type with a cut, in a form.
func (c cut) variant(t reflect.Type, form form) variant {
	return variant{typ: t, of: c.of, drop: c.drop.String(), form: form}
}
