package fieldpath

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// A field is a field of a struct as JSON has it: one of an embedded struct stands beside
// those of the struct itself.
type field struct {
	name  string
	index []int // of it, after the indexes of the embedded structs that it stands in
	typ   reflect.Type
}

// fieldsOf returns the fields of a struct type in the order of its source. A field hides
// those of its name that are embedded.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	at := map[string]int{}
	embeds := map[reflect.Type]bool{t: true}
	var add func(t reflect.Type, index []int)
	add = func(t reflect.Type, index []int) {
		for f := range t.Fields() {
			here := append(index[:len(index):len(index)], f.Index[0])
			name, inlined := jsonName(f)
			if inlined != nil && !embeds[inlined] {
				embeds[inlined] = true
				add(inlined, here)
			}
			if name == "" {
				continue
			}
			known, twice := at[name]
			switch {
			case !twice:
				at[name] = len(fields)
				fields = append(fields, field{name, here, f.Type})
			case len(fields[known].index) > len(here):
				fields[known] = field{name, here, f.Type}
			}
		}
	}
	add(t, nil)
	return fields
}

// jsonName returns the name of a field in JSON, or "" if it has none. If the fields of
// its own stand in its place, inlined is the struct they are of.
func jsonName(f reflect.StructField) (name string, inlined reflect.Type) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", nil
	}
	name, _, _ = strings.Cut(tag, ",")
	if f.Anonymous && name == "" {
		t := f.Type
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			return "", t
		}
	}
	switch {
	case !f.IsExported():
		return "", nil
	case name == "":
		return f.Name, nil
	}
	return name, nil
}

// In returns what is left of the tree, a tree for the struct type of, within a field of
// that type's own, and whether that field is left out whole.
func (t Tree) In(of reflect.Type, f reflect.StructField) (rest Tree, dropped bool) {
	if len(t) == 0 {
		return nil, false
	}
	name, inlined := jsonName(f)
	if inlined == nil {
		rest, known := t[name]
		return rest, known && rest == nil
	}
	for _, inner := range fieldsOf(of) {
		next, known := t[inner.name]
		if !known || inner.index[0] != f.Index[0] {
			continue
		}
		if rest == nil {
			rest = Tree{}
		}
		rest[inner.name] = next
	}
	return rest, false
}

// through returns the type whose fields come next on a path that goes through t: what
// pointers point to, what slices are of.
func through(t reflect.Type) reflect.Type {
	for !opaque(t) && (t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice) {
		t = t.Elem()
	}
	return t
}

// opaque reports whether a type has its own JSON decoder, so that the fields of its struct
// are not those in JSON.
func opaque(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
