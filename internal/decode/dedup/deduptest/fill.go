package deduptest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Filler makes random objects of any API type. It leaves out, empties and repeats fields at
// random, too.
type Filler struct {
	// Random decides.
	Random *rand.Rand
	// Custom sets values of types that have rules of their own, and reports whether it has; nil
	// sets none.
	Custom func(reflect.Value) bool

	json bool // only values that JSON can hold
}

// New returns a filler that decides by a seed.
func New(seed uint64) *Filler {
	return &Filler{Random: rand.New(rand.NewPCG(seed, 0xf111))}
}

// text returns a string that is likely to come again.
func (f *Filler) text() string {
	switch f.Random.IntN(8) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("unique-%x", f.Random.Uint64())
	case 2:
		return string(make([]byte, f.Random.IntN(300)))
	default:
		return []string{"a", "web", "Running", "true", "registry.example.com/app:v1.2.3", "kube-system"}[f.Random.IntN(6)]
	}
}

func (f *Filler) number() int64 {
	switch f.Random.IntN(4) {
	case 0:
		return 0
	case 1:
		return f.Random.Int64() - f.Random.Int64()
	default:
		return f.Random.Int64N(300) - 3
	}
}

// quantities are of each form that a Quantity has in memory: with and without a
// string, as a small number and as one behind a pointer.
var quantities = []string{"", "0", "250m", "512Mi", "1", "100", "1000", "1.5Gi", "3n", "0.5n", "12e6", "12345678901234567890", "1000000000000000000000", "9223372036854775808", "-4Ki"}

func (f *Filler) quantity() resource.Quantity {
	s := quantities[f.Random.IntN(len(quantities))]
	if s == "" {
		return resource.Quantity{}
	}
	return resource.MustParse(s)
}

// Fill sets v to a random value, with values inside each other at most depth deep.
func (f *Filler) Fill(v reflect.Value, depth int) {
	if f.Custom != nil && f.Custom(v) || f.json && f.fillForJSON(v) {
		return
	}
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		if f.Random.IntN(4) > 0 {
			at.Time = time.Unix(f.number(), f.Random.Int64N(1e9))
		}
		return
	case *metav1.MicroTime:
		if f.Random.IntN(4) > 0 {
			at.Time = time.Unix(f.number(), f.Random.Int64N(1e9))
		}
		return
	case *resource.Quantity:
		*at = f.quantity()
		return
	case *metav1.FieldsV1:
		if f.Random.IntN(4) > 0 {
			at.SetRawBytes([]byte(`{"f:` + f.text() + `":{}}`))
		}
		return
	case *metav1.TypeMeta:
		return // not encoded
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.Random.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(f.number())
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(f.number()) / 8)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.Random.IntN(256)))
	case reflect.String:
		v.SetString(f.text())
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Type.Kind() != reflect.Interface && field.Tag.Get("protobuf") != "-" {
				f.Fill(v.Field(i), depth)
			}
		}
	case reflect.Pointer:
		if depth > 0 && f.Random.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.Fill(v.Elem(), depth-1)
		}
	case reflect.Slice:
		f.fillSlice(v, depth)
	case reflect.Map:
		if depth > 0 && f.Random.IntN(3) > 0 {
			f.fillMap(v, depth)
		}
	default:
		panic("no random values of " + v.Type().String())
	}
}

func (f *Filler) fillSlice(v reflect.Value, depth int) {
	if depth == 0 || f.Random.IntN(3) == 0 {
		return
	}
	n := f.Random.IntN(4)
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		f.Fill(v.Index(i), depth-1)
	}
	if n > 1 && f.Random.IntN(3) == 0 {
		v.Index(n - 1).Set(v.Index(0))
	}
}

func (f *Filler) fillMap(v reflect.Value, depth int) {
	v.Set(reflect.MakeMap(v.Type()))
	for range f.Random.IntN(4) {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.Fill(key, depth)
		f.Fill(value, depth-1)
		v.SetMapIndex(key, value)
	}
}

// fillForJSON sets values that JSON holds in another way than protobuf, and reports whether v is
// one of them.
func (f *Filler) fillForJSON(v reflect.Value) bool {
	switch at := v.Addr().Interface().(type) {
	case *metav1.Time:
		at.Time = time.Unix(f.Random.Int64N(4e9), 0)
	case *metav1.MicroTime:
		at.Time = time.Unix(f.Random.Int64N(4e9), f.Random.Int64N(1e9))
	case *intstr.IntOrString:
		*at = intstr.FromString(f.text())
		if f.Random.IntN(2) == 0 {
			*at = intstr.FromInt32(f.Random.Int32() - 1<<30)
		}
	case *metav1.FieldsV1:
		at.SetRawBytes([]byte(f.rawJSON()))
	case *runtime.RawExtension:
		at.Raw = []byte(f.rawJSON())
	case *json.RawMessage:
		*at = []byte(f.rawJSON())
	case *any:
		if err := json.Unmarshal([]byte(f.rawJSON()), at); err != nil {
			panic(err)
		}
	case *metav1.TypeMeta:
		if f.Random.IntN(3) == 0 {
			*at = metav1.TypeMeta{Kind: f.text(), APIVersion: f.text()}
		}
	default:
		if t := v.Type(); t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Name == "Raw" {
			v.Field(0).SetBytes([]byte(f.rawJSON())) // as the JSON of apiextensions
			return true
		}
		return false
	}
	return true
}

// rawJSON returns a short text in JSON.
func (f *Filler) rawJSON() string {
	return []string{"null", "{}", "[]", "7", "-1.5e3", `"a"`, `{"a":[1,{"b":"c","d":[]}],"e":true}`, `["a","\u00e9",null]`}[f.Random.IntN(8)]
}
