package dedup

import (
	"encoding/json"
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
)

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
	if path := deduptest.Differs(got.Elem(), whole.Elem(), ""); path != "" {
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
	f, r := deduptest.New(seed), deduptest.Views{Rand: rand.New(rand.NewPCG(seed, 0))}
	table := new(Table)
	views := 0
	var fallen, inFast int64
	for _, api := range everyType(t) {
		t.Run(api.String(), func(t *testing.T) {
			for range 4 {
				view := r.View(api)
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

// nameView is a view of any object.
type nameView struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
}

// newOrders returns a decoder of unchecked views of the kind Order of shop.example/v1.
func newOrders(t *testing.T, view any) *StructDecoder {
	t.Helper()
	kind := schema.GroupVersionKind{Group: "shop.example", Version: "v1", Kind: "Order"}
	d, err := NewStructDecoder(new(Table), kind, view, ShareAll).Unchecked()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestV1_AnotherKind gives decoders of views in JSON objects of other kinds, which views do not have.
func TestV1_AnotherKind(t *testing.T) {
	d := newOrders(t, &nameView{})
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
		var got nameView
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
	d := newOrders(t, &expectingView{})
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

// TestV1_DamageThatIsSkipped: a text that is not JSON is refused, also where the damage is in a value
// that is not declared: what comes after it may be lost.
func TestV1_DamageThatIsSkipped(t *testing.T) {
	d := newOrders(t, &nameView{})
	for _, status := range []string{
		`{"x":{"y":"z"}}`, `[]`, `{}`, `[1,{},"\u0041"]`, ` null `, `-1.5e3`, `"a\"b"`, `true`, `[[],[ ]]`, "\"\xff\"",
		`{"x":{"y":"z":1}}`, `{"x":]"y":"z":1[}`, `@@@`, `[1,]`, `{,}`, `{"a"}`, `{"a":}`, `01`, `tru`, "\"\n\"", `"\x"`, `[1 2]`,
		`{"note":"lost quote, "next":"}}` + "\n" + `{"type":"MODIFIED","object":{"metadata":{"name":"b"},"status":{"note":"}`,
	} {
		text := `{"metadata":{"name":"a"},"status":` + status + `}`
		var got nameView
		_, err := d.Unmarshal([]byte(text), &got)
		if (err == nil) != json.Valid([]byte(text)) || err == nil && got.Metadata.Name != "a" {
			t.Errorf("%s: %v, %+v", text, err, got)
		}
	}
}
