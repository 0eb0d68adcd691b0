package fieldpath

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// A Pair is a field of a view and the field of the API type whose value it has.
type Pair struct{ View, API Field }

// Pairs returns the fields of a view, a struct type, each with the field of the API type that has
// its name in JSON. A field without one is left out: [CheckView] refuses it.
func Pairs(view, api reflect.Type) (pairs []Pair) {
	of := Fields(api)
	for _, f := range Fields(view) {
		if k := indexOf(of, f.Name); k >= 0 {
			pairs = append(pairs, Pair{f, of[k]})
		}
	}
	return pairs
}

func indexOf(fields []Field, name string) int {
	return slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
}

// CheckView returns an error if a Go type is no view of an API type. Both are pointers to structs.
// The error has the path of the field, both types and the remedy. With a nil API type, the view is
// taken as declared.
func CheckView(view, api reflect.Type) error {
	for _, t := range []reflect.Type{view, api} {
		if t != nil && (t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct) {
			return fmt.Errorf("%v is no pointer to a struct", t)
		}
	}
	if api != nil {
		api = api.Elem()
	}
	view = view.Elem()
	if err := checkRoot(view); err != nil {
		return err
	}
	return viewCheck{}.value(view, api, "")
}

// checkRoot checks what holds for the object itself.
func checkRoot(view reflect.Type) error {
	for _, f := range Fields(view) {
		if f.Name == "kind" || f.Name == "apiVersion" {
			return fmt.Errorf("%q: %v declares the kind, which objects of informers do not have: "+
				"remove it, all objects of an informer are of one kind", f.Name, view)
		}
	}
	metadata := 0
	for f := range view.Fields() {
		if name, _, _ := jsonName(f); name == "metadata" {
			metadata++
		}
	}
	if metadata != 1 {
		return fmt.Errorf("%v has %d fields that are tagged `json:\"metadata\"`: "+
			"embed Meta once, tagged so", view, metadata)
	}
	return nil
}

// A viewCheck has the pairs of types whose check has begun: a type may contain itself.
type viewCheck map[[2]reflect.Type]bool

// value checks the type of a value in a view against the type that the API has there, nil if that
// is unknown.
func (c viewCheck) value(view, api reflect.Type, path string) error {
	pair := [2]reflect.Type{view, api}
	if view == api || c[pair] {
		return nil
	}
	c[pair] = true
	if err := checkKinds(view, api); err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	var apiElem reflect.Type
	switch view.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		if api != nil {
			apiElem = api.Elem()
		}
		return c.value(view.Elem(), apiElem, path)
	case reflect.Struct:
		if api == nil && opaque(view) {
			return nil
		}
		return c.fields(view, api, path)
	}
	return nil
}

// checkKinds returns an error if values of one type cannot be read as values of the other.
func checkKinds(view, api reflect.Type) error {
	mismatch := func(why string) error {
		return fmt.Errorf("it is %v in the view, and %v in the API%s: declare it as %v",
			view, api, why, api)
	}
	method := encodesItself(view)
	switch {
	case view.Kind() == reflect.Struct && promotes(view, method):
		return fmt.Errorf("%v embeds a type whose method %s would stand for the whole: "+
			"give that field a name", view, method)
	case api == nil && view.Kind() == reflect.Map && view.Key().Kind() != reflect.String:
		return fmt.Errorf("the keys of %v are no strings", view)
	case api == nil:
	case hasOwnForm(api):
		return mismatch(", which has an encoding of its own")
	case method != "":
		return mismatch(fmt.Sprintf(", and %v has a method %s", view, method))
	case view.Kind() == reflect.Interface,
		view.Kind() == reflect.Array && !view.ConvertibleTo(api),
		view.Kind() == reflect.Map && api.Kind() == reflect.Map && !sameKeys(view.Key(), api.Key()):
		return mismatch("")
	case view.Kind() == api.Kind():
	case view.Kind() == reflect.Pointer:
		return mismatch(", a pointer for a value")
	case api.Kind() == reflect.Pointer:
		return mismatch(", a value for a pointer, which may be absent")
	default:
		return mismatch("")
	}
	return nil
}

// sameKeys reports whether keys of maps are encoded alike.
func sameKeys(view, api reflect.Type) bool {
	return view == api || view.Kind() == api.Kind() && view.ConvertibleTo(api) &&
		encodesItself(view) == "" && encodesItself(api) == ""
}

// fields checks the fields of a struct.
func (c viewCheck) fields(view, api reflect.Type, path string) error {
	switch err := checkTags(view, map[string]string{}); {
	case err != nil && path != "":
		return fmt.Errorf("%q: %w", path, err)
	case err != nil:
		return err
	}
	var of []Field
	if api != nil {
		of = Fields(api)
	}
	for _, f := range Fields(view) {
		at := strings.TrimPrefix(path+"."+f.Name, ".")
		var in reflect.Type
		if api != nil {
			k := indexOf(of, f.Name)
			if k < 0 {
				return fmt.Errorf("%q: %v has no field %q, which %v declares: it has %s",
					at, api, f.Name, nameOf(view), like(f.Name, of))
			}
			in = of[k].Type
		}
		if err := c.value(f.Type, in, at); err != nil {
			return err
		}
	}
	return nil
}

// like names the field that differs from a name by its case alone, or else all fields.
func like(name string, fields []Field) string {
	for _, f := range fields {
		if strings.EqualFold(f.Name, name) {
			return strconv.Quote(f.Name)
		}
	}
	return names(fields)
}

// nameOf names a struct type: one without a name would be written with all its fields.
func nameOf(t reflect.Type) string {
	if t.Name() == "" {
		return "the view"
	}
	return t.String()
}

// fieldOf names a field of a struct type.
func fieldOf(t reflect.Type, f reflect.StructField) string { return f.Name + " of " + nameOf(t) }

const tagRemedy = "give it the name that the API has in JSON, as in `json:\"nodeName\"`"

// checkTags checks that each field of a struct says which field of the API it is, and no two the
// same: the others would stay empty. seen has the fields that were checked, by their names in JSON:
// those of an embedded struct stand beside the others.
func checkTags(view reflect.Type, seen map[string]string) error {
	for f := range view.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		_, isTagged := f.Tag.Lookup("json")
		_, _, inlined := jsonName(f)
		problem := ""
		switch {
		case !f.IsExported() && !(f.Anonymous && inlined != nil):
			problem = "is not exported: nothing can be written there; export it, with a tag"
		case f.Tag.Get("json") == "-":
			problem = "is left out by its tag: remove the field"
		case inlined != nil && f.Type.Kind() == reflect.Pointer:
			problem = "embeds the pointer " + f.Type.String() + ": embed the struct"
		case inlined != nil && isTagged:
			if err := checkTags(inlined, seen); err != nil {
				return err
			}
			continue
		case inlined != nil:
			problem = "has no tag: write `json:\",inline\"` if its fields stand beside the others, " +
				"or else " + tagRemedy
		case name == "":
			problem = "has no tag: " + tagRemedy
		case slices.Contains(strings.Split(options, ","), "string"):
			problem = "has the option \"string\" in its tag, which no API has: remove it"
		case seen[name] != "":
			return fmt.Errorf("the fields %s and %s are both %q: keep one",
				seen[name], fieldOf(view, f), name)
		default:
			seen[name] = fieldOf(view, f)
		}
		if problem != "" {
			return fmt.Errorf("the field %s %s", fieldOf(view, f), problem)
		}
	}
	return nil
}

// Declared returns the paths of the fields that a view declares, in their order: those at which it
// ends, as a struct of the API does, or a map. It ends where a type comes again in itself, too. Of
// metadata it has the fields, whatever its type is.
func Declared(view reflect.Type) []string { return declared(nil, view, "", nil) }

// declared appends the paths in a value of type t, which is in values of the types around.
func declared(paths []string, t reflect.Type, path string, around []reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	isOne := path != "" && path != "metadata" && encodesItself(t) != ""
	if t.Kind() != reflect.Struct || t.NumField() == 0 || isOne || slices.Contains(around, t) {
		return append(paths, path)
	}
	around = append(around, t)
	for _, f := range Fields(t) {
		paths = declared(paths, f.Type, strings.TrimPrefix(path+"."+f.Name, "."), around)
	}
	return paths
}

// hasOwnForm reports whether values of an API type are not encoded as their Go type says: a time
// or a quantity, for example.
func hasOwnForm(t reflect.Type) bool {
	return opaque(t) || t.Kind() != reflect.Struct && encodesItself(t) != ""
}

// encodesItself returns the method with which values of a type encode or decode themselves, ""
// for none.
func encodesItself(t reflect.Type) string {
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer {
		return ""
	}
	p := reflect.PointerTo(t)
	for _, name := range []string{"UnmarshalJSON", "MarshalJSON", "UnmarshalText", "Unmarshal"} {
		if _, has := p.MethodByName(name); has {
			return name
		}
	}
	return ""
}

// promotes reports whether a struct has a method from an embedded field.
func promotes(t reflect.Type, method string) bool {
	if method == "" {
		return false
	}
	m, has := t.MethodByName(method)
	if !has {
		m, _ = reflect.PointerTo(t).MethodByName(method)
	}
	f := runtime.FuncForPC(m.Func.Pointer())
	if f == nil {
		return false
	}
	file, _ := f.FileLine(f.Entry())
	return file == "<autogenerated>"
}
