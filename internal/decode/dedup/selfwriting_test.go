package dedup

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// writes reports whether the methods of a type may write to a value that they only read: a
// Quantity, a struct with a field that is not exported, and a type that reads its JSON itself into
// more than text and numbers.
func writes(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		return true
	case reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[metav1.FieldsV1]():
		return false
	}
	if t.Kind() != reflect.Struct {
		return t.Kind() == reflect.Map && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	}
	for f := range t.Fields() {
		if !f.IsExported() && (!f.Anonymous || f.Type.Kind() == reflect.Pointer) {
			return true
		}
		if k := f.Type.Kind(); (k == reflect.Map || k == reflect.Pointer) && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return true
		}
	}
	return false
}

// selfWriting adds the addresses of the values in v whose methods write to them, and of everything
// behind a field that is not exported: its owner may write there. It maps them to their types.
func selfWriting(v reflect.Value, hidden bool, into map[unsafe.Pointer]reflect.Type) {
	t := v.Type()
	if t == reflect.TypeFor[metav1.Time]() || t == reflect.TypeFor[metav1.MicroTime]() || t == timeType || t == fieldsType {
		return // their locations are the process's
	}
	hidden = hidden || writes(t) && reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]())
	if v.CanAddr() && t.Size() > 0 && (hidden || writes(t)) {
		into[unsafe.Pointer(v.UnsafeAddr())] = t
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			selfWriting(v.Elem(), hidden, into)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			selfWriting(v.Field(i), hidden || !t.Field(i).IsExported(), into)
		}
	case reflect.Map:
		if hidden && !v.IsNil() {
			into[v.UnsafePointer()] = t
		}
		for it := v.MapRange(); it.Next(); {
			selfWriting(it.Value(), hidden, into)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			selfWriting(v.Index(i), hidden, into)
		}
	}
}

// writers remembers the values of objects whose methods write to them, and the objects, so that no
// address is used again.
type writers struct {
	objects []any
	known   map[unsafe.Pointer]int // the number of the object
}

// add fails the test if an object, a pointer, has such a value in common with an earlier one. It
// returns the number of the object's values.
func (w *writers) add(tb testing.TB, object any) int {
	tb.Helper()
	found := map[unsafe.Pointer]reflect.Type{}
	selfWriting(reflect.ValueOf(object), false, found)
	if w.known == nil {
		w.known = map[unsafe.Pointer]int{}
	}
	for at, t := range found {
		if n, ok := w.known[at]; ok && w.objects[n] != object {
			tb.Fatalf("two objects of type %T have a %v in common, which writes to itself:\n%+v\n%+v", object, t, w.objects[n], object)
		}
		w.known[at] = len(w.objects)
	}
	w.objects = append(w.objects, object)
	return len(found)
}

// TestNoQuantityIsInTwoObjects decodes random objects of every type that has a Quantity
// somewhere, each several times, also without some fields, and looks at where the Quantities are.
func TestNoQuantityIsInTwoObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := deduptest.New(seed)
	table := new(Table)
	compared := 0
	for _, typ := range slices.DeleteFunc(everyType(t), secret) {
		whole := NewDecoder(table, newObject(typ), ShareAll)
		for _, d := range []*Decoder{whole, cmp.Or(without(f, t, whole), whole)} {
			data := randomObject(t, f, typ, 7)
			var had writers
			for range 3 {
				object := newObject(typ)
				if err := d.Unmarshal(data, object); err != nil {
					t.Fatal(err)
				}
				keen(d)
				compared += had.add(t, object)
			}
		}
	}
	if compared < 100 {
		t.Errorf("%d Quantities were compared", compared)
	}
}

// TestDroppedQuantities leaves out a Quantity in every form: its value is there all the same, and
// its methods write to it.
func TestDroppedQuantities(t *testing.T) {
	const path = "spec.containers.env.valueFrom.resourceFieldRef.divisor"
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Env: []corev1.EnvVar{{
		Name: "b", ValueFrom: &corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{Resource: "limits.cpu", Divisor: resource.MustParse("1m")}},
	}}}}}}
	var had writers
	d, err := NewDecoder(new(Table), &corev1.Pod{}, ShareAll).Without(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStructDecoder(new(Table), reflect.TypeFor[corev1.Pod](), ShareAll).Without(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		had.add(t, same(t, d, encode(pod)))
		keen(d)
		had.add(t, sameStruct(t, s, encodeJSON(pod)))
		keenStructs(s)
	}
	for _, o := range had.objects {
		if from := o.(*corev1.Pod).Spec.Containers[0].Env[0].ValueFrom.ResourceFieldRef; from == nil || !from.Divisor.IsZero() || from.Resource != "limits.cpu" {
			t.Errorf("%+v", from)
		}
	}
}

// protoPools and protoPool contain each other as generated types do, first behind a map.
type (
	protoPools struct {
		ByName map[string]protoPool `protobuf:"bytes,1,rep,name=byName"`
	}
	protoPool struct {
		Pools  []protoNested        `protobuf:"bytes,1,rep,name=pools"`
		ByName map[string]protoPool `protobuf:"bytes,2,rep,name=byName"`
		Limit  resource.Quantity    `protobuf:"bytes,3,opt,name=limit"`
	}
	protoNested struct {
		Pool protoPool `protobuf:"bytes,1,opt,name=pool"`
	}
)

// TestTypesInCycles compiles types that contain each other, beginning with each of them: whether
// their values may be shared does not depend on the order.
func TestTypesInCycles(t *testing.T) {
	type list struct{ Items []protoNested }
	for _, form := range []form{inMemory, inProtobuf, inJSON} {
		for _, root := range []reflect.Type{reflect.TypeFor[protoPools](), reflect.TypeFor[protoPool](), reflect.TypeFor[protoNested](), reflect.TypeFor[list]()} {
			if form == inProtobuf && root == reflect.TypeFor[list]() {
				continue
			}
			plans := new(plans)
			plans.init()
			c := &compiler{plans: plans, plan: new(plan), form: form, layouts: map[variant]*layout{}}
			if _, err := c.layout(root, cut{}); err != nil {
				t.Fatal(err)
			}
			for of, l := range c.layouts {
				want := of.typ == quantityType || of.typ.Kind() == reflect.Struct && of.typ != reflect.TypeFor[protoPools]() && of.typ != reflect.TypeFor[list]()
				if l.selfWriting != want {
					t.Errorf("from %v in form %d: %v writes to itself: %v", root, form, of.typ, l.selfWriting)
				}
			}
		}
	}
}

// The methods stand where those of generated types do.

//line /generated/generated.pb.go:1
func (*protoPools) Unmarshal([]byte) error  { return nil }
func (*protoPool) Unmarshal([]byte) error   { return nil }
func (*protoNested) Unmarshal([]byte) error { return nil }

// filling reads its JSON itself, and fills in what it has read when it is asked.
type filling struct {
	Text []byte
	Read map[string]any
}

func (l *filling) UnmarshalJSON(data []byte) error {
	l.Text = slices.Clone(data)
	return nil
}

type withFilling struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              *filling  `json:"spec"`
	Many              []filling `json:"many"`
}

func (w *withFilling) DeepCopyObject() runtime.Object { return &withFilling{} }

// TestReadersOfTheirJSONAreNotShared: neither the decoder nor the sharer of decoded objects shares
// a value that fills itself in.
func TestReadersOfTheirJSONAreNotShared(t *testing.T) {
	sharer := NewSharer(new(Table), SharerOptions{NoSecrets: true})
	decoder := newStructDecoder(new(Table), reflect.TypeFor[withFilling](), ShareAll)
	for form, share := range map[string]func(data []byte) *withFilling{
		"the decoder": func(data []byte) *withFilling {
			o := new(withFilling)
			if _, err := decoder.Unmarshal(data, o); err != nil {
				t.Fatal(err)
			}
			return o
		},
		"the sharer": func(data []byte) *withFilling {
			o := new(withFilling)
			if err := json.Unmarshal(data, o); err != nil {
				t.Fatal(err)
			}
			return sharer.Share(o).(*withFilling)
		},
	} {
		specs, many := map[*filling]bool{}, map[*filling]bool{}
		const objects = 60
		for range objects {
			o := share([]byte(`{"spec":{"a":1,"long":"a value that is worth its place"},"many":[{"long":"another one"}]}`))
			specs[o.Spec], many[&o.Many[0]] = true, true
		}
		if len(specs) != objects || len(many) != objects {
			t.Errorf("%s: %d objects have %d values behind pointers and %d in slices", form, objects, len(specs), len(many))
		}
	}
}
