package dedup

import (
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// A compiler makes the plan for one Go type.
type compiler struct {
	shape    func(form) *shape
	programs map[form]*program
	plan     *plan
}

// A form is a Go type with the fields that are left out of its values. What two forms
// of a type decode from the same bytes differs, so that they share nothing.
type form struct {
	typ  reflect.Type
	drop string // the fieldpath.Tree as a string
}

func formOf(t reflect.Type, drop fieldpath.Tree) form { return form{t, drop.String()} }

// planFor returns the plan for messages of a Go type without the fields of drop.
func (t *Table) planFor(typ reflect.Type, drop fieldpath.Tree) (*plan, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := formOf(typ, drop)
	if p := t.plans[of]; p != nil {
		return p, nil
	}
	c := &compiler{shape: t.shapeLocked, programs: map[form]*program{}, plan: &plan{meta: hasMetadata(typ)}}
	p, err := c.program(typ, drop)
	if err != nil {
		return nil, err
	}
	c.plan.program = p
	t.plans[of] = c.plan
	return c.plan, nil
}

const generatedFile = "generated.pb.go"

// generated reports whether the Unmarshal method of *t is generated code of t
// itself, as opposed to written by hand, or promoted from an embedded field, which
// makes it the compiler's. Only for generated code do the struct tags say all.
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

func (c *compiler) program(t reflect.Type, drop fieldpath.Tree) (*program, error) {
	of := formOf(t, drop)
	if p := c.programs[of]; p != nil {
		return p, nil
	}
	p := &program{typ: t}
	c.programs[of] = p
	if isSecretType(t) {
		return nil, errSecret
	}
	if byHand(p) {
		return p, nil
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is neither a struct nor a list of strings", t)
	}
	if !generated(t) {
		return nil, fmt.Errorf("%s has an Unmarshal that is not known", t)
	}
	for sf := range t.Fields() {
		number, ok, err := fieldNumber(sf)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
		if !ok {
			continue
		}
		rest, dropped := drop.In(t, sf)
		f := skipped(sf.Type)
		if !dropped {
			f, err = c.field(sf.Type, rest)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
		if err := p.add(f, number, sf.Offset); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t, sf.Name, err)
		}
	}
	return p, nil
}

func (p *program) add(f field, number int, offset uintptr) error {
	f.offset = offset
	f.tag = uint32(number)<<3 | f.wireType()
	for len(p.byNumber) <= number {
		p.byNumber = append(p.byNumber, 0)
	}
	if p.byNumber[number] != 0 || len(p.fields) == math.MaxUint8 {
		return fmt.Errorf("field %d is there twice or one too many", number)
	}
	p.fields = append(p.fields, f)
	p.byNumber[number] = uint8(len(p.fields))
	if f.op == opMessage && f.program.quantities {
		p.quantities = true
	}
	return nil
}

// maxFieldNumber bounds the tables of programs.
const maxFieldNumber = 1000

// fieldNumber returns the number that the protobuf tag of a field gives it; ok is
// false for fields that are not encoded.
func fieldNumber(sf reflect.StructField) (number int, ok bool, err error) {
	text, ok := sf.Tag.Lookup("protobuf")
	if !ok || text == "-" {
		return 0, false, nil
	}
	parts := strings.SplitN(text, ",", 3)
	if len(parts) < 2 {
		return 0, false, fmt.Errorf("tag %q has no field number", text)
	}
	number, err = strconv.Atoi(parts[1])
	if err != nil || number < 1 || number > maxFieldNumber {
		return 0, false, fmt.Errorf("tag %q has no field number from 1 to %d", text, maxFieldNumber)
	}
	return number, true, nil
}

func (f *field) wireType() uint32 {
	switch f.op {
	case opSkip:
		return f.tag & 7
	case opBool, opInt32, opInt64, opBoolPointer, opInt32Pointer, opInt64Pointer, opBools, opInt32s, opInt64s:
		return wireVarint
	default:
		return wireBytes
	}
}

// skipped returns the step that passes over a field of type t, which is left out.
func skipped(t reflect.Type) field {
	f := field{op: opSkip, tag: wireBytes}
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if op, ok := scalar(t); ok && op != opString {
		f.tag = wireVarint
	}
	return f
}

// field compiles a field of type t, whose value is to be without the fields of drop.
// What the tag says about the wire type and about repetition is not used: it is wrong
// for many API types, and the generator goes by the Go type, too.
func (c *compiler) field(t reflect.Type, drop fieldpath.Tree) (field, error) {
	f := field{site: c.site(), shape: c.shape(formOf(t, drop))}
	if op, ok := scalar(t); ok {
		f.op = op
		return f, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return c.message(f, t, opMessage, drop)
	case reflect.Pointer:
		return c.pointer(f, t, drop)
	case reflect.Map:
		return c.mapField(f, t)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.op = opBytes
			return f, nil
		}
		if isList(t) {
			return c.message(f, t, opMessage, drop)
		}
		return c.sequence(f, t, drop)
	default:
		return f, fmt.Errorf("%s has no decoder", t)
	}
}

// scalar returns the operation for a value that is one number or string.
func scalar(t reflect.Type) (operation, bool) {
	switch t.Kind() {
	case reflect.Bool:
		return opBool, true
	case reflect.Int32, reflect.Uint32:
		return opInt32, true
	case reflect.Int64, reflect.Uint64:
		return opInt64, true
	case reflect.String:
		return opString, true
	default:
		return 0, false
	}
}

func (c *compiler) message(f field, t reflect.Type, op operation, drop fieldpath.Tree) (field, error) {
	var err error
	f.op = op
	f.program, err = c.program(t, drop)
	return f, err
}

func (c *compiler) pointer(f field, t reflect.Type, drop fieldpath.Tree) (field, error) {
	e := t.Elem()
	f.maker, f.element = c.maker(e), e.Size()
	if op, ok := scalar(e); ok {
		f.op = op + opBoolPointer - opBool
		if op == opString {
			f.op, f.inner = opStringPointer, c.site()
		}
		return f, nil
	}
	return c.message(f, e, opMessagePointer, drop)
}

func (c *compiler) sequence(f field, t reflect.Type, drop fieldpath.Tree) (field, error) {
	e := t.Elem()
	f.maker, f.element = c.maker(e), e.Size()
	switch op, ok := scalar(e); {
	case ok && op == opString:
		f.op, f.inner = opStrings, c.site()
		return f, nil
	case ok && op == opBool:
		f.op = opBools
		return f, nil
	case ok && op == opInt32:
		f.op = opInt32s
		return f, nil
	case ok && op == opInt64:
		f.op = opInt64s
		return f, nil
	case e.Kind() == reflect.Struct:
		return c.message(f, e, opMessages, drop)
	default:
		return f, fmt.Errorf("%s has no decoder", t)
	}
}

func (c *compiler) mapField(f field, t reflect.Type) (field, error) {
	if t.Key().Kind() != reflect.String {
		return f, fmt.Errorf("%s has no decoder: its keys are no strings", t)
	}
	m := &mapping{typ: t, entry: len(c.plan.maps), plain: t.Key() == reflect.TypeFor[string]() && t.Elem() == reflect.TypeFor[string]()}
	c.plan.maps = append(c.plan.maps, t)
	e := t.Elem()
	switch {
	case e.Kind() == reflect.String:
		m.op = opString
	case e.Kind() == reflect.Slice && e.Elem().Kind() == reflect.Uint8:
		m.op = opBytes
	case e.Kind() == reflect.Struct || isList(e):
		value, err := c.program(e, nil) // no path goes through a map
		if err != nil {
			return f, err
		}
		m.op, m.value = opMessage, value
	default:
		return f, fmt.Errorf("%s has no decoder", t)
	}
	f.op, f.mapping, f.element = opMap, m, t.Size()
	return f, nil
}

// maker returns the index of what makes values of type t.
func (c *compiler) maker(t reflect.Type) int32 {
	if i := slices.Index(c.plan.makers, t); i >= 0 {
		return int32(i)
	}
	c.plan.makers = append(c.plan.makers, t)
	return int32(len(c.plan.makers) - 1)
}

func (c *compiler) site() int32 {
	c.plan.sites++
	return int32(c.plan.sites - 1)
}
