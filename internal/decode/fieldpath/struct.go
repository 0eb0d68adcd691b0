package fieldpath

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A Field is a field of a struct as JSON has it: one of an embedded struct stands beside
// those of the struct itself.
type Field struct {
	Name  string
	Index []int // as reflect.Type.FieldByIndex takes it
	Type  reflect.Type
	// tagged means that the name is from a tag, twice that another field hides this one and is
	// hidden by it.
	tagged, twice bool
}

// Fields returns the fields of a struct type that JSON decodes, in the order of its source. Of
// several fields with one name, the least embedded one counts, and among those the one whose
// name is from a tag. If two are left, neither counts.
func Fields(t reflect.Type) []Field {
	var fields []Field
	at := map[string]int{}
	embeds := map[reflect.Type]bool{t: true}
	var add func(t reflect.Type, index []int)
	add = func(t reflect.Type, index []int) {
		for f := range t.Fields() {
			here := append(index[:len(index):len(index)], f.Index[0])
			name, tagged, inlined := jsonName(f)
			if inlined != nil && !embeds[inlined] {
				embeds[inlined] = true
				add(inlined, here)
				delete(embeds, inlined)
			}
			if name == "" {
				continue
			}
			found := Field{Name: name, Index: here, Type: f.Type, tagged: tagged}
			if known, ok := at[name]; !ok {
				at[name] = len(fields)
				fields = append(fields, found)
			} else {
				fields[known] = dominant(fields[known], found)
			}
		}
	}
	add(t, nil)
	return slices.DeleteFunc(fields, func(f Field) bool { return f.twice })
}

// dominant returns which of two fields of one name counts.
func dominant(a, b Field) Field {
	switch {
	case len(a.Index) != len(b.Index):
		if len(b.Index) < len(a.Index) {
			return b
		}
	case a.tagged != b.tagged:
		if b.tagged {
			return b
		}
	default:
		a.twice = true
	}
	return a
}

// jsonName returns the name of a field in JSON, or "" if it has none, and whether the name is
// from a tag. If the fields of its own stand in its place, inlined is the struct they are of.
func jsonName(f reflect.StructField) (name string, tagged bool, inlined reflect.Type) {
	tag := f.Tag.Get("json")
	if tag == "-" {
		return "", false, nil
	}
	name, _, _ = strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	embedded := f.Anonymous && t.Kind() == reflect.Struct
	switch {
	case embedded && name == "":
		return "", false, t
	case !embedded && !f.IsExported():
		return "", false, nil
	case name == "":
		return f.Name, false, nil
	}
	return name, true, nil
}

// validName reports whether package encoding/json accepts a name in a tag.
func validName(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) &&
			!strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c)
	})
}

// In returns the rest of the tree, a tree for the struct type of, within a field of that type's
// own, and whether that field is left out whole.
func (t Tree) In(of reflect.Type, f reflect.StructField) (rest Tree, dropped bool) {
	if len(t) == 0 {
		return nil, false
	}
	name, _, inlined := jsonName(f)
	if inlined == nil {
		rest, known := t[name]
		return rest, known && rest == nil
	}
	for _, inner := range Fields(of) {
		next, known := t[inner.Name]
		if !known || inner.Index[0] != f.Index[0] {
			continue
		}
		if rest == nil {
			rest = Tree{}
		}
		rest[inner.Name] = next
	}
	return rest, false
}

// through returns the type whose fields come next on a path that goes through t: pointers and
// slices are replaced by their element types.
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
