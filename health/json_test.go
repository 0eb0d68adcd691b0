package health

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// filled returns a value in which every field is set, each to another value.
func filled[T any]() T {
	var value T
	n := 0
	fill(reflect.ValueOf(&value).Elem(), &n)
	return value
}

func fill(v reflect.Value, n *int) {
	*n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 1, 2, 3, 4, *n, 0, time.UTC)
		return
	case *error:
		*at = &os.PathError{Op: "open", Path: fmt.Sprint(*n), Err: errors.New(`no "such" file`)}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field, n)
		}
	case reflect.Array:
		fill(v.Index(0), n)
	case reflect.Map:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("default"), element)
	case reflect.Slice:
		element := reflect.New(v.Type().Elem()).Elem()
		fill(element, n)
		v.Set(reflect.Append(v, element))
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		panic("fields of type " + v.Type().String() + " are not known: add them")
	}
}

var update = flag.Bool("update", false, "write testdata/informer.json anew")

func formatted(t *testing.T, value any) string {
	t.Helper()
	form, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(form) + "\n"
}

// TestJSONForm compares the form of an informer that has all fields with the one on file, which
// programs may rely on.
func TestJSONForm(t *testing.T) {
	const file = "testdata/informer.json"
	got := formatted(t, filled[Informer]())
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("the JSON form differs from %s (%v), which -update writes:\n%s", file, err, got)
	}
}

// TestJSONFormIsRead writes an informer that has all fields, reads it, and writes it again.
func TestJSONFormIsRead(t *testing.T) {
	want := formatted(t, filled[Informer]())
	var read Informer
	if err := json.Unmarshal([]byte(want), &read); err != nil {
		t.Fatal(err)
	}
	if got := formatted(t, read); got != want {
		t.Errorf("the JSON form of what was read:\n%s\nwant\n%s", got, want)
	}
	var none Informer
	if err := json.Unmarshal([]byte(`{"name":"pods.v1"}`), &none); err != nil || none.LastError != nil {
		t.Errorf("an informer without errors: %v, %v", none.LastError, err)
	}
	if err := json.Unmarshal([]byte(`{"namespaces":{"a":{"since":1}}}`), &none); err == nil {
		t.Error("a time that is a number is no error")
	}
}

// TestJSONFormHasEveryField asks for each field under its name.
func TestJSONFormHasEveryField(t *testing.T) {
	informer := filled[Informer]()
	hasEveryField(t, informer, "Watch")
	hasEveryField(t, informer.Watch)
	hasEveryField(t, informer.Handlers[0])
}

func hasEveryField(t *testing.T, value any, embedded ...string) {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal([]byte(formatted(t, value)), &fields); err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeOf(value)) {
		name := strings.ToLower(field.Name[:1]) + field.Name[1:]
		names[name] = true
		if _, ok := fields[name]; !ok && !field.Anonymous {
			t.Errorf("the JSON form of a %T has no %q", value, name)
		}
	}
	if len(fields) != len(names)-len(embedded) {
		t.Errorf("the JSON form of a %T has %d fields, want %d", value, len(fields),
			len(names)-len(embedded))
	}
}

func TestJSONFormLeavesOutZeroValues(t *testing.T) {
	got, err := json.Marshal([]any{
		Informer{Name: "pods.v1", Watch: Watch{State: StatePending}}, Handler{Name: "h"},
	})
	const want = `[{"name":"pods.v1","state":"Pending"},{"name":"h","state":""}]`
	if err != nil || string(got) != want {
		t.Errorf("the JSON form is %s (%v), want %s", got, err, want)
	}
}
