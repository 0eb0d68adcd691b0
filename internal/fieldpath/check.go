package fieldpath

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Check returns an error if objects of a Go type, a struct or a pointer to one, do not
// have all the fields of the tree. It names the first path that is wrong, the type that
// lacks the field, and the fields that this type has.
func (t Tree) Check(of reflect.Type) error {
	return t.check(of, "")
}

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
			return fmt.Errorf("%q: %v has no field %q, %s",
				before+Tree{name: t[name]}.Paths()[0], of, name, has(fields, name))
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

// maxNamed is how many fields an error names.
const maxNamed = 12

// has names the fields of a type or, if there are many, those whose names are the most
// like the one that was looked for.
func has(fields []Field, name string) string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Name
	}
	if len(names) <= maxNamed {
		slices.Sort(names)
		return "it has " + strings.Join(names, ", ")
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(distance(a, name), distance(b, name)), cmp.Compare(a, b))
	})
	return fmt.Sprintf("it has %s and %d more",
		strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// distance returns how many letters have to be added, removed or replaced to make one
// name of the other, whatever their case.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, diagonal+1, row[j]+1)
		}
	}
	return row[len(b)]
}
