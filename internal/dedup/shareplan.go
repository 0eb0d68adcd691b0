package dedup

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A sharePlan is what sharers know of one Go type of objects. It does not change,
// but for its idle runs.
type sharePlan struct {
	root   *layout
	sites  int
	makers []reflect.Type
	trees  []step // of places in trees; nil if objects of the type have none
	// mayHoldSecret says that an object of the type may be a Secret unless it tells its kind.
	mayHoldSecret bool

	idle pool[*shareRun]
}

// sharePlans are the plans of a table, or why there is none, by Go type.
type sharePlans struct {
	mu sync.Mutex // guards the rest; the table's lock may be taken under it
	of map[reflect.Type]sharePlanned
}

type sharePlanned struct {
	plan *sharePlan
	why  error
}

// take returns a run that nobody else uses.
func (p *sharePlan) take(t *Table, sharing Sharing) *shareRun {
	if r, ok := p.idle.take(sharing); ok {
		return r
	}
	return newShareRun(t, p, sharing)
}

// give takes a run back.
func (p *sharePlan) give(r *shareRun) { p.idle.give(r, r.sharing) }

// A layout says how values of a Go type lie in memory: what stands in a struct
// itself, structs in it included, is one list of steps.
type layout struct {
	typ   reflect.Type
	size  uintptr
	steps []step
	maker int32
	// flat says that there is nothing to follow.
	flat bool
	// quantities says that a Quantity stands in the value itself.
	quantities bool
	// opaque says why a value of the type is not looked into.
	opaque error
}

type stepKind uint8

const (
	stepMemory    stepKind = iota // bits that are compared as they are
	stepText                      // a string
	stepNumber                    // a pointer to at most 8 bytes of bits
	stepPointer                   // a pointer to another value
	stepSlice                     //
	stepMap                       // a map of a type that mapKind tells
	stepTree                      // a map[string]any, as unstructured objects are
	stepList                      // a []any in such a map
	stepInterface                 // what is in it is left alone
	stepQuantity                  // a Quantity, which its readers may write to
)

// A step is a part of a value that stands at an offset.
type step struct {
	kind   stepKind
	maps   mapKind
	site   int32
	inner  int32 // the site of strings in a map
	offset uintptr
	size   uintptr // of memory
	elem   *layout // of what is pointed to; of the values of a map
	shape  *shape
	typ    reflect.Type // of a map
}

// sharePlanFor returns the plan for objects of a Go type, or why there is none.
func (t *Table) sharePlanFor(typ reflect.Type) (*sharePlan, error) {
	s := &t.sharers
	s.mu.Lock()
	defer s.mu.Unlock()
	if known, ok := s.of[typ]; ok {
		return known.plan, known.why
	}
	c := &shareCompiler{table: t, layouts: map[reflect.Type]*layout{}, plan: &sharePlan{mayHoldSecret: mayHoldSecret(typ)}}
	root, err := c.layout(typ)
	if err == nil {
		err = root.opaque
	}
	c.plan.root = root
	planned := sharePlanned{c.plan, nil}
	if err != nil {
		planned = sharePlanned{nil, err}
	}
	if s.of == nil {
		s.of = map[reflect.Type]sharePlanned{}
	}
	s.of[typ] = planned
	return planned.plan, planned.why
}

// A shareCompiler makes the plan of one Go type of objects.
type shareCompiler struct {
	table   *Table
	layouts map[reflect.Type]*layout
	plan    *sharePlan
}

func (c *shareCompiler) site() int32 {
	c.plan.sites++
	return int32(c.plan.sites - 1)
}

func (c *shareCompiler) shape(t reflect.Type) *shape {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.table.shapeLocked(formOf(t, nil))
}

// layout returns the layout of values of a type. An error says that it, or what it
// leads to, is a Secret.
func (c *shareCompiler) layout(t reflect.Type) (*layout, error) {
	if l := c.layouts[t]; l != nil {
		return l, nil
	}
	l := &layout{typ: t, size: t.Size(), flat: true, maker: int32(len(c.plan.makers))}
	c.plan.makers = append(c.plan.makers, t)
	c.layouts[t] = l
	if err := c.add(l, t, 0); err != nil {
		return nil, err
	}
	for i := range l.steps {
		s := &l.steps[i]
		l.flat = l.flat && s.kind == stepMemory
		l.quantities = l.quantities || s.kind == stepQuantity
	}
	return l, nil
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	quantityType = reflect.TypeFor[resource.Quantity]()
	treeType     = reflect.TypeFor[map[string]any]()
	listType     = reflect.TypeFor[[]any]()
	handleType   = reflect.TypeFor[unique.Handle[string]]()
	fieldsType   = reflect.TypeFor[metav1.FieldsV1]()
)

// errOpaque is why a value is not looked into.
var errOpaque = errors.New("it holds what cannot be compared")

// add appends the steps of a value of type t at an offset.
func (c *shareCompiler) add(l *layout, t reflect.Type, offset uintptr) error {
	s := step{offset: offset, site: -1, inner: -1}
	switch t.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128:
		l.addMemory(offset, t.Size())
		return nil
	case reflect.String:
		s.kind, s.site = stepText, c.site()
	case reflect.Interface:
		s.kind = stepInterface
	case reflect.Struct:
		return c.addStruct(l, t, offset)
	case reflect.Array:
		return c.addArray(l, t, offset)
	case reflect.Pointer, reflect.Slice:
		if err := c.pointing(&s, t); err != nil {
			return err
		}
	case reflect.Map:
		if err := c.mapping(&s, t); err != nil {
			return err
		}
	default:
		l.opaque = fmt.Errorf("%w: a %v", errOpaque, t)
		return nil
	}
	l.steps = append(l.steps, s)
	return nil
}

// addMemory appends bits, to the step before if they follow it.
func (l *layout) addMemory(offset, size uintptr) {
	if n := len(l.steps); n > 0 {
		if last := &l.steps[n-1]; last.kind == stepMemory && last.offset+last.size == offset {
			last.size += size
			return
		}
	}
	if size > 0 {
		l.steps = append(l.steps, step{kind: stepMemory, offset: offset, size: size, site: -1, inner: -1})
	}
}

// addStruct appends the fields of a struct. One with fields that are not exported is
// looked into only if it is known what they are for: there may be a lock among them.
func (c *shareCompiler) addStruct(l *layout, t reflect.Type, offset uintptr) error {
	switch {
	case isSecretType(t):
		return errSecret
	case t == timeType, t == handleType:
		l.addMemory(offset, t.Size())
		return nil
	case t == quantityType:
		l.steps = append(l.steps, step{kind: stepQuantity, offset: offset, site: -1, inner: -1})
		return nil
	}
	for sf := range t.Fields() {
		if !sf.IsExported() && t != fieldsType {
			l.opaque = fmt.Errorf("%w: %v has the field %s, which is not exported", errOpaque, t, sf.Name)
			return nil
		}
		if err := c.add(l, sf.Type, offset+sf.Offset); err != nil {
			return err
		}
	}
	return nil
}

// mostElements bounds the arrays that are looked into.
const mostElements = 64

func (c *shareCompiler) addArray(l *layout, t reflect.Type, offset uintptr) error {
	inner, err := c.layout(t.Elem())
	switch {
	case err != nil:
		return err
	case inner.flat && inner.opaque == nil && len(inner.steps) == 1 && inner.steps[0].size == inner.size:
		l.addMemory(offset, t.Size())
		return nil
	case t.Len() > mostElements:
		l.opaque = fmt.Errorf("%w: an array %v", errOpaque, t)
		return nil
	}
	for i := range uintptr(t.Len()) {
		if err := c.add(l, t.Elem(), offset+i*inner.size); err != nil {
			return err
		}
	}
	return nil
}

// pointing makes a step of a pointer or a slice.
func (c *shareCompiler) pointing(s *step, t reflect.Type) (err error) {
	if s.elem, err = c.layout(t.Elem()); err != nil {
		return err
	}
	s.site, s.shape, s.kind = c.site(), c.shape(t), stepSlice
	if t.Kind() == reflect.Pointer {
		s.kind = stepPointer
		if k := t.Elem().Kind(); k == reflect.Bool || k >= reflect.Int && k <= reflect.Float64 {
			s.kind = stepNumber
		}
	}
	return nil
}
