package fieldpath

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Check returns an error if objects of a Go type, a struct or a pointer to one, do not
// have all the fields of the tree. It names the first path that is wrong, the type that
// lacks the field, and the fields that this type has.
func (t Tree) Check(of reflect.Type) error { return t.check(of, "") }

// CheckField checks the paths within one field of the objects, which is of the Go type. It is
// for objects whose other fields are unknown.
func (t Tree) CheckField(name string, of reflect.Type) error {
	return t[name].check(of, name+".")
}

func (t Tree) check(of reflect.Type, before string) error {
	if len(t) == 0 {
		return nil
	}
	of = through(of)
	if problem := closed(of); problem != "" {
		return fmt.Errorf("%q ends within %q, which is %s: leave that out whole or not at all",
			before+t.Paths()[0], strings.TrimSuffix(before, "."), problem)
	}
	fields := Fields(of)
	for _, name := range slices.Sorted(maps.Keys(t)) {
		k := slices.IndexFunc(fields, func(f Field) bool { return f.Name == name })
		if k < 0 {
			return fmt.Errorf("%q: %v has no field %q, it has %s",
				before+Tree{name: t[name]}.Paths()[0], of, name, names(fields))
		}
		if err := t[name].check(fields[k].Type, before+name+"."); err != nil {
			return err
		}
	}
	return nil
}

// closed describes a type that no path goes through; "" for other types.
func closed(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Map:
		return fmt.Sprintf("a map (%v)", t)
	case opaque(t) || t.Kind() != reflect.Struct:
		return fmt.Sprintf("one value (%v)", t)
	}
	return ""
}

func names(fields []Field) string {
	var names []string
	for _, f := range fields {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
