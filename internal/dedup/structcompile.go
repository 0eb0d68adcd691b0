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

	"github.com/tidings-go/tidings/internal/fieldpath"
)

var (
	unmarshalerType     = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonNumberType      = reflect.TypeFor[json.Number]()
)

// jsonLayout completes the layout of values that are decoded from JSON. A type that
// cannot be decoded here is of kindUnknown; the errors are of Secrets and of very large structs.
func (c *compiler) jsonLayout(l *layout, drop fieldpath.Tree) (err error) {
	t := l.typ
	l.self, err = c.jsonField(t, drop)
	l.kind = l.self.kind
	if err != nil || l.kind == kindUnknown {
		return err
	}
	l.flat = l.kind == kindBits
	switch {
	case readsJSON(t):
		c.ownReader(l)
	case l.kind == kindMap:
		l.maps = mapOfOthers
		if l.elem, err = c.layout(t.Elem(), nil); err == nil && l.elem.kind == kindString {
			l.maps = mapOfStrings
		}
	case l.kind == kindStruct:
		err = c.jsonStruct(l, drop)
	}
	return err
}

// readsJSON reports whether a type reads its JSON itself.
func readsJSON(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface &&
		(p.Implements(unmarshalerType) || p.Implements(textUnmarshalerType))
}

// jsonField returns a field of a type, without its place.
func (c *compiler) jsonField(t reflect.Type, drop fieldpath.Tree) (f field, err error) {
	f = field{kind: kindUnknown, stats: -1, inner: -1, size: t.Size()}
	switch k := t.Kind(); {
	case readsJSON(t):
		if t.Name() != "" {
			f.kind = kindStruct
			f.elem, err = c.layout(t, drop)
		}
	case t == jsonNumberType:
	case k == reflect.Struct:
		f.elem, err = c.layout(t, drop)
		f.kind = kindStruct
	case isNumber(k):
		f.kind, f.tag = kindBits, uint32(k)
	case k == reflect.String:
		f.kind, f.stats = kindString, c.newStats()
	case isBytes(t):
		f.kind = kindBytes
	case k == reflect.Interface && t.NumMethod() == 0:
		f.kind = kindAny
	case k == reflect.Map:
		if key := t.Key(); key.Kind() != reflect.String ||
			reflect.PointerTo(key).Implements(textUnmarshalerType) {
			return f, nil
		}
		return c.jsonPart(f, kindMap, t, t, drop)
	case k == reflect.Slice:
		return c.jsonPart(f, kindSlice, t, t.Elem(), drop)
	case k == reflect.Pointer && isNumber(t.Elem().Kind()) && !readsJSON(t.Elem()):
		f.kind, f.tag, f.size = kindNumber, uint32(t.Elem().Kind()), t.Elem().Size()
	case k == reflect.Pointer:
		return c.jsonPart(f, kindPointer, t, t.Elem(), drop)
	}
	return f, err
}

// jsonPart completes a field whose value may be shared.
func (c *compiler) jsonPart(f field, kind kind, t, elem reflect.Type,
	drop fieldpath.Tree) (_ field, err error) {
	f.kind, f.stats, f.inner = kind, c.newStats(), c.newStats()
	f.space = c.plans.spaceLocked(variant{t, drop.String(), inJSON})
	f.elem, err = c.layout(elem, drop)
	return f, err
}

// jsonStruct adds the fields of a struct, by their names in JSON.
func (c *compiler) jsonStruct(l *layout, drop fieldpath.Tree) error {
	for _, known := range fieldpath.Fields(l.typ) {
		f := field{kind: kindDropped}
		if rest, inside := drop[known.Name]; !inside || rest != nil {
			var err error
			if f, err = c.jsonField(known.Type, rest); err != nil {
				return err
			}
		}
		at, reachable := offsetOf(l.typ, known.Index)
		if f.kind != kindDropped && (!reachable || quoted(l.typ.FieldByIndex(known.Index))) {
			f = field{kind: kindUnknown}
		}
		f.offset = at
		if len(l.fields) == math.MaxUint8 {
			return fmt.Errorf("%v has more than %d fields", l.typ, math.MaxUint8)
		}
		l.fields = append(l.fields, f)
		l.names = append(l.names, known.Name)
		l.quantities = l.quantities || f.kind == kindStruct && f.elem.quantities
	}
	l.indexNames()
	return nil
}

// offsetOf returns where a field of a struct stands. It reports false if the field stands in
// an embedded struct behind a pointer.
func offsetOf(t reflect.Type, index []int) (offset uintptr, ok bool) {
	for i, k := range index {
		if i > 0 && t.Kind() != reflect.Struct {
			return 0, false
		}
		f := t.Field(k)
		offset, t = offset+f.Offset, f.Type
	}
	return offset, true
}

// quoted reports whether the tag of a field says that its value is in a string.
func quoted(sf reflect.StructField) bool {
	_, options, _ := strings.Cut(sf.Tag.Get("json"), ",")
	return slices.Contains(strings.Split(options, ","), "string")
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
