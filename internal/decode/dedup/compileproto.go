package dedup

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
	"github.com/tidings-go/tidings/internal/decode/wire"
)

// generated reports whether the Unmarshal method of *t is generated code of t itself, as
// opposed to written by hand, or promoted from an embedded field, which makes it the
// compiler's. Only for generated code do the struct tags describe the encoding.
func generated(t reflect.Type) bool {
	method, ok := reflect.PointerTo(t).MethodByName("Unmarshal")
	if !ok {
		return false
	}
	f := runtime.FuncForPC(method.Func.Pointer())
	if f == nil {
		return false
	}
	file, _ := f.FileLine(f.Entry())
	return strings.HasSuffix(file, "/"+generatedFile)
}

// protoLayout completes the layout of values that are decoded from protobuf.
func (c *compiler) protoLayout(l *layout, cut cut) error {
	t := l.typ
	switch t.Kind() {
	case reflect.String:
		l.kind = kindString
		return nil
	case reflect.Bool, reflect.Int32, reflect.Uint32, reflect.Int64, reflect.Uint64:
		return nil // bits
	}
	l.kind = kindStruct
	switch {
	case isHandwritten(l):
		return nil
	case isBytes(t):
		l.kind = kindBytes // as the values of maps
		return nil
	case t.Kind() != reflect.Struct:
		return fmt.Errorf("%s is neither a struct nor a list of strings", t)
	case cut.of == undeclared, !generated(cut.api(t)):
		return fmt.Errorf("%s has an Unmarshal that is not known", cut.api(t))
	}
	var declared []fieldpath.Pair
	if cut.of != nil {
		declared = cut.fields(t)
	}
	for sf := range cut.api(t).Fields() {
		number, ok, err := fieldNumber(sf)
		switch {
		case !ok || err != nil:
		case cut.of == nil:
			err = c.addNumbered(l, sf, number, cut.drop)
		default:
			err = c.addDeclared(l, sf, number, declared)
		}
		if err != nil {
			return fmt.Errorf("%s.%s: %w", cut.api(t), sf.Name, err)
		}
	}
	return nil
}

// addNumbered adds the field of an API type that has a number in protobuf. Its wire type follows
// from the Go type, as in the generator: the tags are wrong in places.
func (c *compiler) addNumbered(l *layout, sf reflect.StructField, number int,
	drop fieldpath.Tree) error {
	rest, dropped := drop.In(l.typ, sf)
	f := field{kind: kindDropped}
	if !dropped {
		var err error
		if f, err = c.numbered(sf.Type, cut{drop: rest}); err != nil {
			return err
		}
	}
	f.offset = sf.Offset
	return l.addNumber(f, number, sf.Type)
}

// addDeclared adds a field of the API type, sf, as far as a view declares it. JSON may have the
// fields of sf in place of sf itself: then the view declares some of them.
func (c *compiler) addDeclared(
	l *layout, sf reflect.StructField, number int, declared []fieldpath.Pair,
) error {
	var f field
	var err error
	k := slices.IndexFunc(declared, func(p fieldpath.Pair) bool {
		return p.API.Index[0] == sf.Index[0]
	})
	switch {
	case k < 0:
		return nil
	case len(declared[k].API.Index) == 1:
		of, plain := declared[k], false
		if f, err = c.numbered(of.View.Type, cut{}.to(of.View.Type, of.API.Type)); err != nil {
			return err
		}
		if f.offset, plain, _ = place(l.typ, of.View.Index); !plain {
			return fmt.Errorf("%s is not simply written to", of.View.Name)
		}
	case sf.Type.Kind() != reflect.Struct:
		return fmt.Errorf("%s is inlined in JSON", sf.Type)
	default:
		f.kind = kindStruct
		if f.elem, err = c.layout(l.typ, cut{of: sf.Type}); err != nil {
			return err
		}
	}
	return l.addNumber(f, number, sf.Type)
}

// numbered returns a field of a type that protobuf has, without its place.
func (c *compiler) numbered(t reflect.Type, cut cut) (f field, err error) {
	if f, err = c.field(t, cut); err == nil && f.kind == kindBits {
		_, err = c.layout(t, cut) // refuses numbers that API types do not have
	}
	if err == nil && !f.decodable() {
		err = fmt.Errorf("%s has no decoder", t)
	}
	return f, err
}

// decodable reports whether a field is of a type that API types have.
func (f *field) decodable() bool {
	switch f.kind {
	case kindAny:
		return false
	case kindPointer, kindSlice:
		return f.elem.kind <= kindStruct
	case kindMap:
		values := f.elem.elem
		if values == nil { // a struct in a map of itself: the layout of its values is not complete
			return f.elem.typ.Elem().Kind() == reflect.Struct
		}
		return values.kind == kindString || values.kind == kindBytes || values.kind == kindStruct
	}
	return true
}

func wireType(t reflect.Type) uint32 {
	if k := t.Kind(); (k == reflect.Pointer || k == reflect.Slice) && !isBytes(t) {
		t = t.Elem()
	}
	if isNumber(t.Kind()) {
		return wire.VarintType
	}
	return wire.BytesType
}

// fieldNumber returns the number that the protobuf tag of a field gives it; ok is false for
// fields that are not encoded.
func fieldNumber(sf reflect.StructField) (number int, ok bool, err error) {
	text, ok := sf.Tag.Lookup("protobuf")
	if !ok || text == "-" {
		return 0, false, nil
	}
	_, rest, _ := strings.Cut(text, ",")
	digits, _, _ := strings.Cut(rest, ",")
	number, err = strconv.Atoi(digits)
	if err != nil || number < 1 || number > maxFieldNumber {
		return 0, false, fmt.Errorf("tag %q has no field number from 1 to %d", text, maxFieldNumber)
	}
	return number, true, nil
}
