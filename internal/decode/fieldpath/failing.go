package fieldpath

import (
	"encoding/json"
	"reflect"
)

// Failing returns the path of a field for which decode refuses an encoded value of a type, "" if
// that is the value itself. Elements of lists and of maps have the path of their field.
func Failing(data []byte, t reflect.Type, decode func(data []byte, into any) error) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if opaque(t) {
		return ""
	}
	fails := func(value []byte, of reflect.Type) bool {
		return value != nil && decode(value, reflect.New(of).Interface()) != nil
	}
	var elements []json.RawMessage
	values := map[string]json.RawMessage{}
	switch t.Kind() {
	case reflect.Struct:
		if decode(data, &values) != nil {
			return ""
		}
		for _, f := range Fields(t) {
			if !fails(values[f.Name], f.Type) {
				continue
			}
			if rest := Failing(values[f.Name], f.Type, decode); rest != "" {
				return f.Name + "." + rest
			}
			return f.Name
		}
	case reflect.Map:
		decode(data, &values) //nolint:errcheck // without values nothing fails
		for _, value := range values {
			elements = append(elements, value)
		}
	case reflect.Slice:
		decode(data, &elements) //nolint:errcheck // without elements nothing fails
	}
	for _, element := range elements {
		if fails(element, t.Elem()) {
			return Failing(element, t.Elem(), decode)
		}
	}
	return ""
}
