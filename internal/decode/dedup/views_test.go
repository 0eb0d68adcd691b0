package dedup

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// randomViews makes random views of API types.
type randomViews struct{ *rand.Rand }

// of returns a random Go type for the values of an API type.
func (r randomViews) of(api reflect.Type, depth int) reflect.Type {
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
func (r randomViews) structOf(api reflect.Type, depth int, always string) reflect.Type {
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

// object returns a random view of objects of an API type, nil if they have no metadata.
func (r randomViews) object(api reflect.Type) any {
	hasMetadata := func(f fieldpath.Field) bool { return f.Name == "metadata" }
	if !slices.ContainsFunc(fieldpath.Fields(api), hasMetadata) {
		return nil
	}
	return reflect.New(r.embed(r.structOf(api, 6, "metadata"))).Interface()
}

// embed puts some of the fields of the structs in a type without a name into embedded structs.
func (r randomViews) embed(t reflect.Type) reflect.Type {
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

// differs returns the path of a field of a view that has not the value which the API type has, ""
// if there is none.
func differs(view, api reflect.Value, path string) string {
	switch kind := view.Kind(); {
	case view.Type() == api.Type():
		if !reflect.DeepEqual(view.Interface(), api.Interface()) {
			return path
		}
	case kind == reflect.Struct:
		for _, f := range fieldpath.Fields(view.Type()) {
			of := fieldpath.Fields(api.Type())
			k := slices.IndexFunc(of, func(o fieldpath.Field) bool { return o.Name == f.Name })
			found := differs(view.FieldByIndex(f.Index), api.FieldByIndex(of[k].Index), path+"."+f.Name)
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
		return differs(view.Elem(), api.Elem(), path)
	case view.Len() != api.Len():
		return path + " (length)"
	case kind == reflect.Slice:
		for i := range view.Len() {
			if found := differs(view.Index(i), api.Index(i), fmt.Sprint(path, "[", i, "]")); found != "" {
				return found
			}
		}
	default:
		for key, value := range view.Seq2() {
			of := api.MapIndex(key.Convert(api.Type().Key()))
			if !of.IsValid() {
				return path + " (key)"
			}
			if found := differs(value, of, fmt.Sprint(path, "[", key, "]")); found != "" {
				return found
			}
		}
	}
	return ""
}

// viewDecoder is a decoder of views in one of the forms.
type viewDecoder interface {
	Shares() error
	Stats() DecoderStats
}

// sameView decodes data as a view, and as the whole object with the code of others. What these
// accept has to be accepted, and each declared field is the same.
func sameView(tb testing.TB, d viewDecoder, view any, api reflect.Type, data []byte) {
	tb.Helper()
	frame := slices.Clone(data)
	whole, got := reflect.New(api), reflect.New(reflect.TypeOf(view).Elem())
	left := d.Stats().Generated
	var gotErr, wantErr error
	switch d := d.(type) {
	case *Decoder:
		gotErr = d.Unmarshal(frame, got.Interface())
		if gotErr != ErrQuantity {
			wantErr = NewDecoder(new(Table), newObject(api), ShareNothing).Unmarshal(data, whole.Interface())
		}
	case *StructDecoder:
		if takesHours(api, data) {
			return
		}
		wantErr = utiljson.Unmarshal(data, whole.Interface())
		// The kinds of random objects are random, too.
		of := whole.Elem().FieldByName("TypeMeta").Interface().(metav1.TypeMeta)
		d.kind = kindOf{of.APIVersion, of.Kind}
		_, gotErr = d.Unmarshal(frame, got.Interface())
	}
	deduptest.Overwrite(tb, frame, data)
	if gotErr == ErrQuantity || wantErr != nil {
		return // the whole object is rejected, maybe for a field that is not declared
	}
	if gotErr != nil {
		tb.Fatalf("%v as %v from %q: %v", api, got.Type(), data, gotErr)
	}
	if path := differs(got.Elem(), whole.Elem(), ""); path != "" {
		tb.Fatalf("%v as %v from %q:\n%s is not the same:\nwhole %+v\nview  %+v",
			api, got.Type(), data, path, whole, got)
	}
	if d.Stats().Generated == left {
		deduptest.Exact(tb, got)
	}
}

// TestV1_EveryType decodes random objects of every type of client-go's scheme as random views, in
// protobuf and in JSON, whole and damaged. The views of a type share a table.
func TestV1_EveryType(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f, r := deduptest.New(seed), randomViews{rand.New(rand.NewPCG(seed, 0))}
	table := new(Table)
	views := 0
	var fallen, inFast int64
	for _, api := range everyType(t) {
		t.Run(api.String(), func(t *testing.T) {
			for range 4 {
				view := r.object(api)
				if view == nil {
					return
				}
				inProtobuf, err := NewDecoder(table, newObject(api), ShareAll).View(view)
				if err != nil {
					t.Fatal(err)
				}
				inJSON, err := newStructDecoder(table, api, ShareAll).View(view)
				if err != nil {
					t.Fatal(err)
				}
				for _, d := range []viewDecoder{inProtobuf, inJSON} {
					if (d.Shares() != nil) != secret(api) {
						t.Fatalf("%T is not decoded here: %v", view, d.Shares())
					}
				}
				views++
				for range 2 {
					encoded, text := randomObject(t, f, api, 6), f.JSON(t, api, 4)
					for range 2 {
						sameView(t, inProtobuf, view, api, encoded)
						sameView(t, inJSON, view, api, text)
						keen(inProtobuf)
						keenStructs(inJSON)
					}
				}
				if s := inProtobuf.Stats(); !secret(api) && s.Generated+s.Rejected != 0 {
					t.Errorf("%T, %+v: all objects should be decoded here", view, s)
				}
				for range 4 {
					sameView(t, inProtobuf, view, api, f.Damage(randomObject(t, f, api, 6)))
					sameView(t, inJSON, view, api, f.Damage(f.JSON(t, api, 4)))
				}
				fallen += inProtobuf.Stats().Generated
				inFast += inJSON.Stats().Shared
			}
		})
	}
	if views < 300 || fallen == 0 || inFast < int64(views) {
		t.Errorf("%d views, %d objects left to the generated code, %d decoded from JSON: little is proved",
			views, fallen, inFast)
	}
}

// TestV3_SecretsLeaveNothing decodes Secrets as views: nothing of them is in the table.
func TestV3_SecretsLeaveNothing(t *testing.T) {
	var secretType reflect.Type
	for _, api := range everyType(t) {
		if api.Name() == "Secret" {
			secretType = api
		}
	}
	table := new(Table)
	type view struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Data map[string][]byte `json:"data"`
	}
	d, err := NewDecoder(table, newObject(secretType), ShareAll).View(&view{})
	if err != nil {
		t.Fatal(err)
	}
	f := deduptest.New(1)
	for range 10 {
		data := randomObject(t, f, secretType, 4)
		for range 3 {
			sameView(t, d, &view{}, secretType, data)
		}
	}
	if s := table.Stats(); s.Values+s.Strings != 0 {
		t.Errorf("%+v: parts of Secrets are shared", s)
	}
}

// TestV1_AnotherKind gives decoders of views in JSON objects of other kinds, which views do not have.
func TestV1_AnotherKind(t *testing.T) {
	type view struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	kind := schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Order"}
	d, err := NewStructDecoder(new(Table), kind, &view{}, ShareAll).Unchecked()
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`{"metadata":{"name":"a"}}`: "",
		`{"kind":"Order","apiVersion":"shop.example/v1","metadata":{"name":"a"}}`:                "",
		`{"metadata":{"name":"a"},"kind":"Order","apiVersion":"shop.example/v1"}`:                "",
		`{"kind":"","metadata":{"name":"a"}}`:                                                    "",
		`{"kind":null,"metadata":{"name":"a"}}`:                                                  "",
		`{"\u006bind":"Other","apiVersion":"shop.example/v1","metadata":{"name":"a"}}`:           "Other",
		`{"kind":"Order","apiVersion":"shop.example/v2","metadata":{"name":"a"}}`:                "v2",
		`{"kind":"Order","metadata":{"name":"a"}}`:                                               "Order",
		`{"kind":"Order","kind":"Other","apiVersion":"shop.example/v1","metadata":{"name":"a"}}`: "Other",
		`{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a"}}`:                            "Secret",
		`{"kind":7,"apiVersion":"v1","metadata":{"name":"a"}}`:                                   "kind",
	} {
		var got view
		_, err := d.Unmarshal([]byte(text), &got)
		switch {
		case want == "" && (err != nil || got.Metadata.Name != "a"):
			t.Errorf("%s: %v, %+v", text, err, got)
		case want != "" && (err == nil || !containsText(err, want)):
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func containsText(err error, text string) bool { return strings.Contains(err.Error(), text) }

// expectingView has two fields whose values have the same bytes, of which one has more that is read.
type expectingView struct {
	Metadata struct{} `json:"metadata"`
	First    *struct {
		Note string `json:"note"`
	} `json:"first-resourcesOfThis"`
	Other *struct {
		Note string             `json:"note"`
		Max  *resource.Quantity `json:"max"`
	} `json:"other-resourcesOfThis"`
}

// TestV1_ExpectedInOneShape expects a value of which a number is skipped where it comes first, and
// read, but not here, where it comes again.
func TestV1_ExpectedInOneShape(t *testing.T) {
	kind := schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Order"}
	d, err := NewStructDecoder(new(Table), kind, &expectingView{}, ShareAll).Unchecked()
	if err != nil {
		t.Fatal(err)
	}
	var held []*expectingView
	for i := range 20 {
		const value = `{"max":1e100,"note":"a long text, so that the value is expected"}`
		text := `{"metadata":{},"first-resourcesOfThis":` + value
		if i%5 == 4 {
			text += `,"other-resourcesOfThis":` + value
		}
		got, want := new(expectingView), new(expectingView)
		held = append(held, got)
		wantErr := utiljson.Unmarshal([]byte(text+"}"), want)
		if _, err := d.Unmarshal([]byte(text+"}"), got); err != nil || wantErr != nil {
			t.Fatal(err, wantErr)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("object %d:\n%+v\n%+v", i, got.Other, want.Other)
		}
		keenStructs(d)
	}
	runtime.KeepAlive(held)
}
