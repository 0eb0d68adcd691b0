package deduptest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// Views makes random views of API types.
type Views struct{ *rand.Rand }

// of returns a random Go type for the values of an API type.
func (r Views) of(api reflect.Type, depth int) reflect.Type {
	_, readsItself := reflect.PointerTo(api).MethodByName("UnmarshalJSON")
	_, isMessage := reflect.PointerTo(api).MethodByName("Unmarshal")
	switch kind := api.Kind(); {
	case readsItself, isMessage && kind != reflect.Struct, depth == 0:
		return api
	case kind == reflect.Pointer:
		return reflect.PointerTo(r.of(api.Elem(), depth))
	case kind == reflect.Slice && api.Elem().Kind() != reflect.Uint8:
		return reflect.SliceOf(r.of(api.Elem(), depth))
	case kind == reflect.Map:
		return reflect.MapOf(r.of(api.Key(), depth), r.of(api.Elem(), depth))
	case kind == reflect.String && r.IntN(2) == 0:
		return reflect.TypeFor[string]()
	case kind == reflect.Struct && r.IntN(4) > 0:
		return r.structOf(api, depth-1, "")
	}
	return api
}

// structOf returns a struct with some of the fields of an API type, in any order, and with the field
// of a name.
func (r Views) structOf(api reflect.Type, depth int, always string) reflect.Type {
	var fields []reflect.StructField
	for i, f := range fieldpath.Fields(api) {
		if f.Name != always && (r.IntN(2) == 0 || f.Name == "kind" || f.Name == "apiVersion") {
			continue
		}
		fields = append(fields, reflect.StructField{
			Name: fmt.Sprint("F", i), Type: r.of(f.Type, depth),
			Tag: reflect.StructTag(fmt.Sprintf("json:%q", f.Name)),
		})
	}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	return reflect.StructOf(fields)
}

// View returns a random view of objects of an API type, nil if they have no metadata.
func (r Views) View(api reflect.Type) any {
	hasMetadata := func(f fieldpath.Field) bool { return f.Name == "metadata" }
	if !slices.ContainsFunc(fieldpath.Fields(api), hasMetadata) {
		return nil
	}
	return reflect.New(r.embed(r.structOf(api, 6, "metadata"))).Interface()
}

// embed puts some of the fields of the structs in a type without a name into embedded structs.
func (r Views) embed(t reflect.Type) reflect.Type {
	switch kind := t.Kind(); {
	case t.Name() != "":
		return t
	case kind == reflect.Pointer:
		return reflect.PointerTo(r.embed(t.Elem()))
	case kind == reflect.Slice:
		return reflect.SliceOf(r.embed(t.Elem()))
	case kind == reflect.Map:
		return reflect.MapOf(t.Key(), r.embed(t.Elem()))
	case kind != reflect.Struct:
		return t
	}
	var fields, inside []reflect.StructField
	for f := range t.Fields() {
		f = reflect.StructField{Name: f.Name, Type: r.embed(f.Type), Tag: f.Tag}
		if f.Tag.Get("json") != "metadata" && r.IntN(6) == 0 {
			inside = append(inside, f)
		} else {
			fields = append(fields, f)
		}
	}
	if len(inside) > 0 {
		fields = slices.Insert(fields, r.IntN(len(fields)+1), reflect.StructField{
			Name: "Inside", Type: reflect.StructOf(inside), Tag: `json:",inline"`, Anonymous: true,
		})
	}
	return reflect.StructOf(fields)
}

// Differs returns the path of the first field of a view whose value is not the one of the whole
// object; "" if all are equal.
func Differs(view, api reflect.Value, path string) string {
	switch kind := view.Kind(); {
	case view.Type() == api.Type():
		if !reflect.DeepEqual(view.Interface(), api.Interface()) {
			return path
		}
	case kind == reflect.Struct:
		for _, f := range fieldpath.Fields(view.Type()) {
			of := fieldpath.Fields(api.Type())
			k := slices.IndexFunc(of, func(o fieldpath.Field) bool { return o.Name == f.Name })
			found := Differs(view.FieldByIndex(f.Index), api.FieldByIndex(of[k].Index), path+"."+f.Name)
			if found != "" {
				return found
			}
		}
	case kind != reflect.Pointer && kind != reflect.Slice && kind != reflect.Map:
		if view.Convert(api.Type()).Interface() != api.Interface() {
			return path
		}
	case view.IsNil() != api.IsNil():
		return path + " (nil)"
	case view.IsNil():
	case kind == reflect.Pointer:
		return Differs(view.Elem(), api.Elem(), path)
	case view.Len() != api.Len():
		return path + " (length)"
	case kind == reflect.Slice:
		for i := range view.Len() {
			if found := Differs(view.Index(i), api.Index(i), fmt.Sprint(path, "[", i, "]")); found != "" {
				return found
			}
		}
	default:
		for key, value := range view.Seq2() {
			of := api.MapIndex(key.Convert(api.Type().Key()))
			if !of.IsValid() {
				return path + " (key)"
			}
			if found := Differs(value, of, fmt.Sprint(path, "[", key, "]")); found != "" {
				return found
			}
		}
	}
	return ""
}
