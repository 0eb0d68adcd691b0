package dedup

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"unsafe"
)

// A plan is the compiled layout of one Go type of objects, in one form, or the error of its
// compilation. It does not change, except for its idle workers.
type plan struct {
	err     error
	root    *layout
	stats   int            // number of fieldStats that a worker has
	types   []reflect.Type // of the layouts, by their index
	layouts []*layout      // by their index
	generic []field        // of values in interfaces, by name; nil if the type has none
	// view reports whether objects are views, so that undeclared fields of JSON are skipped.
	view bool
	// hasMetadata reports whether encoded objects begin with their metadata.
	hasMetadata bool
	// mayHoldSecret reports whether an object may be a Secret unless its kind excludes that.
	mayHoldSecret bool

	decoders workerPool[*protoWorker]
	structs  workerPool[*structWorker]
	sharers  workerPool[*shareWorker]
}

// A form is the form in which objects come to a Decoder, a StructDecoder or a Sharer.
type form uint8

const (
	inMemory form = iota // decoded already
	inProtobuf
	inJSON
)

// A variant is a Go type in a form, with the API type that it is a view of, or without the fields
// that are left out of its values. One struct may be a view of several API types.
type variant struct {
	typ, of reflect.Type
	drop    string // a fieldpath.Tree
	form    form
}

// plans are the plans and key spaces of a table.
type plans struct {
	mu     sync.Mutex // guards the rest; no other lock is taken under it
	spaces map[variant]*keySpace
	plans  map[variant]*plan
}

func (p *plans) init() { p.spaces, p.plans = map[variant]*keySpace{}, map[variant]*plan{} }

func (p *plans) spaceLocked(of variant) *keySpace {
	s := p.spaces[of]
	if s == nil {
		s = &keySpace{salt: rand.Uint64()}
		p.spaces[of] = s
	}
	return s
}

// plan returns the plan for objects of a Go type in a form, with a cut.
func (p *plans) plan(t reflect.Type, cut cut, form form) *plan {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := cut.variant(t, form)
	if known := p.plans[key]; known != nil {
		return known
	}
	made := &plan{hasMetadata: hasMetadata(cut.api(t)), view: cut.of != nil}
	made.mayHoldSecret = form == inMemory && mayHoldSecret(t)
	c := &compiler{plans: p, plan: made, form: form, layouts: map[variant]*layout{}}
	made.root, made.err = c.layout(t, cut)
	switch {
	case made.err != nil:
	case form == inJSON && (t.Kind() != reflect.Struct || made.root.read != nil):
		made.err = fmt.Errorf("%v is no struct, or has an UnmarshalJSON of its own", t)
	default:
		made.err = made.root.opaque
	}
	p.plans[key] = made
	return made
}

// A layout has the places of the fields of values of one Go type, or of one variant of it, in
// memory. A Decoder finds them by their protobuf numbers, a StructDecoder by their names. For both
// a StructDecoder and a Sharer, the fields of embedded structs are among them; for a Sharer, those
// of all structs in the value itself.
type layout struct {
	typ    reflect.Type
	size   uintptr
	index  int32 // of the allocator of such values
	kind   kind  // of a value of the type
	fields []field
	elem   *layout // of the values of a map
	maps   mapKind // of a map

	// byNumber has the index of a field plus one, by the number of the field.
	byNumber []uint8
	// decode decodes the types that have an Unmarshal written by hand.
	decode func(w *protoWorker, data []byte, to unsafe.Pointer) bool

	// self is a field that is a value of the type; a StructDecoder's only, as all up to read.
	self field
	// names are the names of the fields. slots have the index of a field plus one, from the
	// place on that shift makes of the mix of its name.
	names []string
	slots []uint8
	shift uint
	// read reads the values of types that read JSON themselves.
	read func(w *structWorker, l *layout, i uint32, to unsafe.Pointer) bool

	// isView reports whether the fields are those of a view: others of the API are skipped.
	isView bool
	// flat reports whether the value holds no pointers.
	flat bool
	// selfWriting reports whether methods which only read may write to a value with an address: see
	// compiler.writesItself.
	selfWriting bool
	// opaque is the reason for which a Sharer does not look into values of the type.
	opaque error
}

// shape returns the shape of the JSON of values, as [wire.Tokens] has it: 0 if all of it is read.
func (l *layout) shape() uint16 {
	switch {
	case l.isView, l.kind == kindMap && l.elem != nil && l.elem.shape() != 0:
		return uint16(l.index + 1)
	case l.typ.Kind() == reflect.Pointer, l.typ.Kind() == reflect.Slice:
		return l.self.shape
	}
	return 0
}

// fieldShape returns the shape of the value of a field of an object of a shape, and whether the
// field is read at all.
func (p *plan) fieldShape(shape uint16, name []byte) (value uint16, reads bool) {
	l := p.layouts[shape-1]
	if l.kind == kindMap {
		return l.elem.shape(), true
	}
	if n := l.named(name); n >= 0 {
		return l.fields[n].shape, true
	}
	return 0, l == p.root && (string(name) == "kind" || string(name) == "apiVersion")
}

// A kind is the kind of value that a field holds.
type kind uint8

const (
	kindBits    kind = iota // numbers and bools, which are compared as they are
	kindString              // a string
	kindStruct              // a struct in the value itself; not a Sharer's
	kindBytes               // []byte; not a Sharer's
	kindNumber              // a pointer to a number or a bool
	kindPointer             // a pointer to another value
	kindSlice               // From here on, a field may come more than once in protobuf.
	kindMap
	kindDropped  // of any type, left out
	kindObject   // a map[string]any
	kindArray    // a []any in such a map
	kindAny      // an interface; a Sharer leaves its value alone
	kindQuantity // a Quantity
	kindUnknown  // of a type that a StructDecoder cannot decode
)

// A mapKind is the kind of a map. All except the last have strings as keys.
type mapKind uint8

const (
	mapOfStrings    mapKind = iota // to strings
	mapOfQuantities                // to Quantity
	mapOfOthers                    // any other map
)

// A field is a part of a value that stands at an offset. It fits into a cache line.
type field struct {
	tag    uint32 // in protobuf; in JSON the reflect.Kind of a number; genericName of a generic one
	stats  int32  // index of the fieldStats of the field, if it may be shared
	inner  int32  // index of those of the strings in its value
	kind   kind
	shape  uint16 // of its JSON, as wire.Tokens has it
	offset uintptr
	size   uintptr   // of kindNumber, that of the number
	elem   *layout   // of the value that it points to; of a map itself
	space  *keySpace // of its type
}

// addNumber adds a field with a number, which is of type t in the API.
func (l *layout) addNumber(f field, number int, t reflect.Type) error {
	f.tag = uint32(number)<<3 | wireType(t)
	for len(l.byNumber) <= number {
		l.byNumber = append(l.byNumber, 0)
	}
	if l.byNumber[number] != 0 || len(l.fields) == math.MaxUint8 {
		return fmt.Errorf("field %d is there twice or one too many", number)
	}
	l.fields = append(l.fields, f)
	l.byNumber[number] = uint8(len(l.fields))
	return nil
}
