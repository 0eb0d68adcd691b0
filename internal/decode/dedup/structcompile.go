package dedup

import (
	"encoding"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"strings"
)

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumberType      = reflect.TypeFor[json.Number]()
)

// jsonLayout completes the layout of values that are decoded from JSON. A type that
// cannot be decoded here is of kindUnknown; the errors are of Secrets and of very large structs.
func (c *compiler) jsonLayout(l *layout, cut cut) (err error) {
	l.self, err = c.field(l.typ, cut)
	l.kind = l.self.kind
	switch {
	case err != nil || l.kind == kindUnknown:
		return err
	case readsJSON(l.typ):
		c.ownReader(l)
	case l.kind == kindMap:
		return c.mapLayout(l, cut)
	case l.kind == kindStruct:
		return c.jsonStruct(l, cut)
	}
	return nil
}

func readsJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface &&
		(p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType))
}

// unknownInJSON reports whether values of a type are left to the API machinery.
func unknownInJSON(t reflect.Type) bool {
	switch k := t.Kind(); {
	case readsJSON(t):
		return t.Name() == "" // whether its methods are called depends on where it stands
	case k == reflect.Map:
		return t.Key().Kind() != reflect.String ||
			reflect.PointerTo(t.Key()).Implements(textUnmarshalerType)
	case k == reflect.Interface:
		return t.NumMethod() > 0
	case k == reflect.String:
		return t == jsonNumberType
	default:
		return !isNumber(k) && k != reflect.Struct && k != reflect.Slice && k != reflect.Pointer
	}
}

// jsonStruct adds the fields of a struct, by their names in JSON.
func (c *compiler) jsonStruct(l *layout, outer cut) (err error) {
	for _, known := range outer.fields(l.typ) {
		f := field{kind: kindUnknown}
		at, plain, secret := place(l.typ, known.View.Index)
		if secret {
			return errSecret
		}
		rest, inside := outer.drop[known.View.Name]
		inner := cut{drop: rest}
		if outer.of != nil {
			inner = outer.to(known.View.Type, known.API.Type)
		}
		switch {
		case inside && rest == nil:
			f.kind = kindDropped
		case plain:
			if f, err = c.field(known.View.Type, inner); err != nil {
				return err
			}
		}
		if len(l.fields) == math.MaxUint8 {
			return fmt.Errorf("%v has more than %d fields", l.typ, math.MaxUint8)
		}
		f.offset = at
		l.fields = append(l.fields, f)
		l.names = append(l.names, known.View.Name)
	}
	l.indexNames()
	return nil
}

// place returns where a field of a struct stands. plain is false for one that is not simply
// written to: behind an embedded pointer, with a value in a string, or an embedded struct that is
// not exported, whose methods package reflect does not call. The offset of a field behind a
// pointer is that of the pointer. secret reports whether the field is one of an embedded Secret.
func place(t reflect.Type, index []int) (offset uintptr, plain, secret bool) {
	var f reflect.StructField
	plain = true
	for _, k := range index {
		if t.Kind() == reflect.Pointer {
			t, plain = t.Elem(), false
		}
		secret = secret || isSecretType(t)
		f = t.Field(k)
		if plain {
			offset += f.Offset
		}
		t = f.Type
	}
	_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	quoted := slices.Contains(strings.Split(options, ","), "string")
	return offset, plain && f.IsExported() && !quoted, secret
}

// indexNames makes the slots of a struct: the index of a field plus one is in the first free
// slot from the place of its name on. Three of four slots stay empty.
func (l *layout) indexNames() {
	width := bits.Len(uint(4 * len(l.names)))
	l.slots, l.shift = make([]uint8, 1<<width), uint(64-width)
	for i, name := range l.names {
		at := mix([]byte(name)) >> l.shift
		for l.slots[at] != 0 {
			at = (at + 1) & uint64(len(l.slots)-1)
		}
		l.slots[at] = uint8(i + 1)
	}
}

// named returns the index of the field of a name, or -1.
func (l *layout) named(name []byte) int {
	for at := mix(name) >> l.shift; ; at = (at + 1) & uint64(len(l.slots)-1) {
		i := int(l.slots[at]) - 1
		if i < 0 || l.names[i] == string(name) {
			return i
		}
	}
}
