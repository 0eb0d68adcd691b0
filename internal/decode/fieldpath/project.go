package fieldpath

import "reflect"

// A Projection makes a view from a value of its API type: it sets the fields that both have. A nil
// one assigns the value as it is, where both have one type. Any number of goroutines may use it.
type Projection struct {
	elem  *Projection // of the elements of a pointer, a slice or a map
	steps []step      // of the fields of a struct
}

// A step is a field of a struct.
type step struct {
	to, from []int
	inside   *Projection
}

// NewProjection returns a projection of an API type on a view, both structs or pointers to them,
// which [CheckView] has accepted.
func NewProjection(view, api reflect.Type) *Projection { return projections{}.of(view, api) }

type projections map[[2]reflect.Type]*Projection

func (p projections) of(view, api reflect.Type) *Projection {
	pair := [2]reflect.Type{view, api}
	if known := p[pair]; known != nil || view == api {
		return known
	}
	made := new(Projection)
	p[pair] = made // a type may contain itself
	switch view.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		made.elem = p.of(view.Elem(), api.Elem())
	case reflect.Struct:
		for _, f := range Pairs(view, api) {
			inside := p.of(f.View.Type, f.API.Type)
			made.steps = append(made.steps, step{f.View.Index, f.API.Index, inside})
		}
	}
	return made
}

// Project sets the object that to points to from the one that from points to. What they point to
// may be the same afterwards.
func (p *Projection) Project(to, from any) {
	p.value(reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem())
}

func (p *Projection) value(to, from reflect.Value) {
	switch kind := from.Kind(); {
	case p == nil:
		to.Set(from)
	case kind == reflect.Struct:
		p.fields(to, from)
	case kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map:
		to.Set(from.Convert(to.Type()))
	case from.IsNil():
	case kind == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		p.elem.value(to.Elem(), from.Elem())
	case kind == reflect.Slice:
		to.Set(reflect.MakeSlice(to.Type(), from.Len(), from.Len()))
		for i := range from.Len() {
			p.elem.value(to.Index(i), from.Index(i))
		}
	default:
		p.entries(to, from)
	}
}

func (p *Projection) fields(to, from reflect.Value) {
	for _, s := range p.steps {
		// A field behind an embedded pointer that is nil is absent.
		if field, err := from.FieldByIndexErr(s.from); err == nil {
			s.inside.value(to.FieldByIndex(s.to), field)
		}
	}
}

func (p *Projection) entries(to, from reflect.Value) {
	t := to.Type()
	to.Set(reflect.MakeMapWithSize(t, from.Len()))
	for key, value := range from.Seq2() {
		made := reflect.New(t.Elem()).Elem()
		p.elem.value(made, value)
		to.SetMapIndex(key.Convert(t.Key()), made)
	}
}
