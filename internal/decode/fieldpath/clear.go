package fieldpath

import "reflect"

// A Clearer sets the fields of a tree to their zero values in objects of one Go type that
// were decoded with them. It may be used by any number of goroutines; nil clears nothing.
type Clearer struct {
	typ   reflect.Type // a struct
	steps []clearing
}

// A clearing clears a field, or the fields that are left out within it.
type clearing struct {
	index  []int
	inside *Clearer // nil if the field is left out whole
}

// NewClearer returns a clearer for objects of a Go type, a struct or a pointer to one, that
// the tree was checked against; nil if there is nothing to clear.
func NewClearer(tree Tree, t reflect.Type) *Clearer {
	if len(tree) == 0 {
		return nil
	}
	c := &Clearer{typ: through(t)}
	for _, f := range Fields(c.typ) {
		if rest, known := tree[f.Name]; known {
			c.steps = append(c.steps, clearing{f.Index, NewClearer(rest, f.Type)})
		}
	}
	return c
}

// Clear clears the fields of an object, a pointer to a struct of the clearer's type. It
// writes to everything on the way to them: nothing of it may be shared.
func (c *Clearer) Clear(obj any) {
	if c != nil {
		c.clear(reflect.ValueOf(obj))
	}
}

func (c *Clearer) clear(v reflect.Value) {
	switch {
	case v.Type() == c.typ:
		for _, s := range c.steps {
			s.clear(v)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.clear(v.Index(i))
		}
	case !v.IsNil():
		c.clear(v.Elem())
	}
}

func (s *clearing) clear(v reflect.Value) {
	for _, i := range s.index {
		if v.Kind() == reflect.Pointer { // an embedded struct
			if v.IsNil() {
				return
			}
			v = v.Elem()
		}
		v = v.Field(i)
	}
	if s.inside == nil {
		v.SetZero()
		return
	}
	s.inside.clear(v)
}

// Remove removes the fields of the tree from an object that is a map, as JSON is decoded
// without a Go type.
func (t Tree) Remove(object map[string]any) {
	for name, rest := range t {
		if rest == nil {
			delete(object, name)
			continue
		}
		rest.removeIn(object[name])
	}
}

func (t Tree) removeIn(value any) {
	switch value := value.(type) {
	case map[string]any:
		t.Remove(value)
	case []any:
		for _, element := range value {
			t.removeIn(element)
		}
	}
}
