package dedup

import (
	"errors"
	"fmt"
	"reflect"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	objectsType  = reflect.TypeFor[map[string]any]()
	arraysType   = reflect.TypeFor[[]any]()
	handleType   = reflect.TypeFor[unique.Handle[string]]()
	fieldsType   = reflect.TypeFor[metav1.FieldsV1]()
)

// errOpaque is why a Sharer does not look into a value.
var errOpaque = errors.New("it holds what cannot be compared")

// A compiler makes the plan of one Go type of objects.
type compiler struct {
	plans   *plans // locked
	plan    *plan
	form    form
	layouts map[variant]*layout
	inside  bool // of plainSlices, which looks inside a type that reads its JSON itself
}

func (c *compiler) newStats() int32 {
	c.plan.stats++
	return int32(c.plan.stats - 1)
}

// layout returns the layout of a type with a cut. An error means that the type cannot be decoded
// here, or that it is a Secret or leads to one.
func (c *compiler) layout(t reflect.Type, cut cut) (*layout, error) {
	of := cut.variant(t, c.form)
	if l := c.layouts[of]; l != nil {
		return l, nil
	}
	l := &layout{
		typ: t, size: t.Size(), index: int32(len(c.plan.types)), flat: true,
		selfWriting: c.writesItself(t),
		isView:      cut.of != nil && t.Kind() == reflect.Struct && !readsJSON(t),
	}
	c.plan.types, c.plan.layouts = append(c.plan.types, t), append(c.plan.layouts, l)
	c.layouts[of] = l
	switch {
	case isSecretType(t), isSecretType(cut.api(t)):
		return nil, errSecret
	case c.form == inJSON:
		return l, c.jsonLayout(l, cut)
	case t.Kind() == reflect.Map:
		return l, c.mapLayout(l, cut)
	case c.form == inProtobuf:
		return l, c.protoLayout(l, cut)
	}
	if err := c.add(l, t, 0); err != nil {
		return nil, err
	}
	for i := range l.fields {
		l.flat = l.flat && l.fields[i].kind == kindBits
	}
	return l, nil
}

// writesItself reports whether methods that only read may write to a value of a type that has an
// address. The Go type alone decides, whichever of its fields are decoded: an absent Quantity is
// written to as well. The walk ends, because a Go type contains itself only behind a pointer, a
// slice or a map, whose values are shared for themselves.
func (c *compiler) writesItself(t reflect.Type) bool {
	switch {
	case t == quantityType:
		return true
	case t == timeType, t == handleType, t == fieldsType, t == rawExtensionType:
		return false
	case c.form != inProtobuf && !c.inside && readsJSON(t):
		_, plain := c.plainSlices(t)
		return !plain
	case t.Kind() == reflect.Array:
		return c.writesItself(t.Elem())
	case t.Kind() != reflect.Struct:
		return false
	}
	for f := range t.Fields() {
		embedded := f.Anonymous && f.Type.Kind() == reflect.Struct
		if !f.IsExported() && !embedded || c.writesItself(f.Type) {
			return true
		}
	}
	return false
}

// mapLayout completes the layout of a map. No path of dropped fields goes through a map.
func (c *compiler) mapLayout(l *layout, cut cut) (err error) {
	l.kind, l.maps, l.flat = kindMap, mapOfOthers, false
	key, elem := l.typ.Key().Kind(), l.typ.Elem()
	switch {
	case c.form == inProtobuf && key != reflect.String:
		return fmt.Errorf("%s has no decoder: its keys are no strings", l.typ)
	case c.form == inMemory && l.typ == objectsType:
		l.kind = kindObject
		c.genericFields()
		return nil
	}
	if l.elem, err = c.layout(elem, cut.elem(l.typ)); err != nil {
		return err
	}
	switch {
	case key != reflect.String:
	case elem.Kind() == reflect.String && (c.form != inJSON || l.elem.kind == kindString):
		l.maps = mapOfStrings
	case elem == quantityType:
		l.maps = mapOfQuantities
	}
	return nil
}

// field returns a field of a type, without its place.
func (c *compiler) field(t reflect.Type, cut cut) (f field, err error) {
	f = field{size: t.Size()}
	switch k := t.Kind(); {
	case c.form == inJSON && unknownInJSON(t):
		f.kind = kindUnknown
	case k == reflect.Struct, c.form == inProtobuf && isList(t), c.form == inJSON && readsJSON(t):
		f.kind = kindStruct
		if f.elem, err = c.layout(t, cut); err == nil {
			f.shape = f.elem.shape()
		}
	case c.form != inMemory && isBytes(t):
		f.kind = kindBytes
	case k == reflect.String:
		f.kind, f.stats = kindString, c.newStats()
	case k == reflect.Interface:
		f.kind = kindAny
	case k == reflect.Pointer, k == reflect.Slice, k == reflect.Map:
		return c.partField(f, t, cut)
	case isNumber(k):
		f.tag = uint32(k) // and the zero kind, kindBits
	case k != reflect.Complex64 && k != reflect.Complex128:
		err = fmt.Errorf("%w: a %v", errOpaque, t)
	}
	return f, err
}

// partField completes a pointer, a slice or a map, whose value may be shared.
func (c *compiler) partField(f field, t reflect.Type, cut cut) (_ field, err error) {
	f.stats, f.inner = c.newStats(), c.newStats()
	f.space = c.plans.spaceLocked(cut.variant(t, c.form))
	elem, inside := t.Elem(), cut.elem(t)
	switch t.Kind() {
	case reflect.Map:
		f.kind, elem, inside = kindMap, t, cut
		if c.form == inMemory && t == objectsType {
			f.kind = kindObject
		}
	case reflect.Slice:
		f.kind = kindSlice
	default:
		f.kind = kindPointer
		if isNumber(elem.Kind()) && !(c.form == inJSON && readsJSON(elem)) {
			f.kind, f.tag, f.size = kindNumber, uint32(elem.Kind()), elem.Size()
		}
	}
	if f.elem, err = c.layout(elem, inside); err == nil {
		f.shape = f.elem.shape()
	}
	return f, err
}

// isNumber reports whether values of a kind are numbers or bools.
func isNumber(k reflect.Kind) bool {
	return k >= reflect.Bool && k <= reflect.Float64 && k != reflect.Uintptr
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}

const generatedFile = "generated.pb.go"

// maxFieldNumber bounds the field numbers of API types.
const maxFieldNumber = 1000

// add adds the fields of a value of type t at an offset to a Sharer's layout.
func (c *compiler) add(l *layout, t reflect.Type, offset uintptr) error {
	switch {
	case t == timeType, t == handleType,
		t.Kind() == reflect.Array && isNumber(t.Elem().Kind()):
		l.addBits(offset, t.Size())
		return nil
	case t == quantityType:
		l.fields = append(l.fields, field{kind: kindQuantity, offset: offset})
		return nil
	case t.Kind() == reflect.Struct:
		return c.addStruct(l, t, offset)
	}
	f, err := c.field(t, cut{})
	switch {
	case errors.Is(err, errOpaque):
		l.opaque = err
		return nil
	case err != nil:
		return err
	case f.kind == kindBits:
		l.addBits(offset, f.size)
		return nil
	}
	f.offset = offset
	l.fields = append(l.fields, f)
	return nil
}

// addBits adds bits, to the field before if they follow it.
func (l *layout) addBits(offset, size uintptr) {
	if n := len(l.fields); n > 0 {
		last := &l.fields[n-1]
		if last.kind == kindBits && last.offset+last.size == offset {
			last.size += size
			return
		}
	}
	if size > 0 {
		l.fields = append(l.fields, field{offset: offset, size: size})
	}
}

// addStruct adds the fields of a struct. One with fields that are not exported is opaque,
// unless their purpose is known: there may be a lock among them.
func (c *compiler) addStruct(l *layout, t reflect.Type, offset uintptr) error {
	if isSecretType(t) {
		return errSecret
	}
	for sf := range t.Fields() {
		if !sf.IsExported() && t != fieldsType {
			l.opaque = fmt.Errorf("%w: %v has the field %s, which is not exported",
				errOpaque, t, sf.Name)
			return nil
		}
		if err := c.add(l, sf.Type, offset+sf.Offset); err != nil {
			return err
		}
	}
	return nil
}

// fieldNames is the number of fieldStats for the names of fields in generic values: a name
// mostly means the same in all of them.
const fieldNames = 256

// genericFields makes the fields of generic values, of objects first and then of arrays.
func (c *compiler) genericFields() {
	if c.plan.generic != nil {
		return
	}
	c.plan.generic = make([]field, 2*fieldNames)
	for i := range c.plan.generic {
		f := &c.plan.generic[i]
		f.kind, f.tag, f.stats = kindObject, uint32(i%fieldNames), c.newStats()
		f.inner, f.space = c.newStats(), c.plans.spaceLocked(variant{typ: objectsType})
		if i >= fieldNames {
			f.kind, f.space = kindArray, c.plans.spaceLocked(variant{typ: arraysType})
		}
	}
}
