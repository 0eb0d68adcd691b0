package dedup

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidings-go/tidings/internal/dedup/deduptest"
)

// The types that random structs embed, with fields that hide each other.
type (
	Shallow struct {
		A string
		B int `json:"b"`
	}
	Deep struct {
		A string `json:"a"`
		Shallow
	}
	Deeper struct {
		*Shallow
		C []Shallow
	}
	Loose struct{ B, A any }
	// looping contains itself in every way in which a type can.
	looping struct {
		Name string `json:"a"`
		Many []looping
		M    map[string]*looping
		P    **looping `json:"A"`
	}
	mapReader    map[string]int
	listReader   []string
	numberReader int32
	textKey      string
)

func (mapReader) UnmarshalJSON([]byte) error { return nil }

func (l *listReader) UnmarshalJSON(data []byte) error {
	*l = append(*l, string(data))
	return nil
}

func (n *numberReader) UnmarshalJSON(data []byte) error {
	*n = numberReader(len(data))
	return nil
}

func (k *textKey) UnmarshalText(text []byte) error {
	*k = textKey("key " + string(text))
	return nil
}

var (
	partTypes = []reflect.Type{
		reflect.TypeFor[string](), reflect.TypeFor[named](), reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[uint16](),
		reflect.TypeFor[uint64](), reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[any](), reflect.TypeFor[json.Number](),
		reflect.TypeFor[json.RawMessage](), reflect.TypeFor[[]byte](), reflect.TypeFor[upper](), reflect.TypeFor[reader](), reflect.TypeFor[rawSchema](), reflect.TypeFor[mapReader](),
		reflect.TypeFor[listReader](), reflect.TypeFor[numberReader](), reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](),
		reflect.TypeFor[metav1.Duration](), reflect.TypeFor[time.Time](), reflect.TypeFor[resource.Quantity](), reflect.TypeFor[intstr.IntOrString](),
		reflect.TypeFor[runtime.RawExtension](), reflect.TypeFor[runtime.Unknown](), reflect.TypeFor[metav1.FieldsV1](), reflect.TypeFor[metav1.LabelSelector](),
		reflect.TypeFor[corev1.ResourceList](), reflect.TypeFor[Deep](), reflect.TypeFor[Deeper](), reflect.TypeFor[Loose](), reflect.TypeFor[looping](),
		reflect.TypeFor[struct{}](), reflect.TypeFor[struct{ metav1.Time }](), reflect.TypeFor[struct{ Deep }](), reflect.TypeFor[netip.Addr](),
		reflect.TypeFor[[2]int](), reflect.TypeFor[uintptr](), reflect.TypeFor[complex64](), reflect.TypeFor[map[textKey]int](), reflect.TypeFor[map[int8]string](), reflect.TypeFor[fmt.Stringer](),
	}
	embeddedTypes = []reflect.Type{
		reflect.TypeFor[Shallow](), reflect.TypeFor[Deep](), reflect.TypeFor[Deeper](), reflect.TypeFor[Loose](), reflect.TypeFor[*Shallow](), reflect.TypeFor[*Loose](),
	}
	fieldTags = []string{
		`json:"a"`, `json:"b"`, `json:"A"`, `json:"a,omitempty"`, `json:"b,string"`, `json:"-"`, `json:"-,"`, `json:",inline"`, ``, `json:"é"`, `json:"a b"`, `json:"bad\"name"`, `json:"c"`, `json:"d,omitzero"`,
	}
	fieldNamesInJSON = strings.Split(`a b A - é c d B C F0 F1 F2 F3 F4 \u0061 M Many Name unknown bad\"name Deep Loose kind`, " ")
)

// randomStructs makes struct types and objects for them.
type randomStructs struct{ *rand.Rand }

func oneOf[T any](r randomStructs, of []T) T { return of[r.IntN(len(of))] }

func (r randomStructs) fieldType(depth int) reflect.Type {
	way := r.IntN(8)
	switch {
	case depth == 0 || way > 3:
		return oneOf(r, partTypes)
	case way == 0:
		return reflect.PointerTo(r.fieldType(depth - 1))
	case way == 1:
		return reflect.SliceOf(r.fieldType(depth - 1))
	}
	return reflect.MapOf(partTypes[way-2], r.fieldType(depth-1)) // by string or by named
}

func (r randomStructs) structType() reflect.Type {
	var fields []reflect.StructField
	if r.IntN(2) == 0 {
		typ := oneOf(r, embeddedTypes)
		name := typ.Name()
		if typ.Kind() == reflect.Pointer {
			name = typ.Elem().Name()
		}
		fields = append(fields, reflect.StructField{Name: name, Type: typ, Anonymous: true})
	}
	for i := range 1 + r.IntN(5) {
		tag := reflect.StructTag(oneOf(r, fieldTags))
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: r.fieldType(3), Tag: tag})
	}
	return reflect.StructOf(fields)
}

func (r randomStructs) value(depth int) string {
	if depth == 0 || r.IntN(3) == 0 {
		return oneOf(r, deduptest.OddValues)
	}
	if r.IntN(2) == 0 {
		return r.object(r.IntN(4), depth)
	}
	elements := make([]string, r.IntN(4))
	for i := range elements {
		elements[i] = r.value(depth - 1)
	}
	return "[" + strings.Join(elements, ",") + "]"
}

func (r randomStructs) object(n, depth int) string {
	fields := make([]string, n)
	for i := range fields {
		fields[i] = `"` + oneOf(r, fieldNamesInJSON) + `":` + r.value(depth-1)
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// TestRandomStructs decodes random objects as random types.
func TestRandomStructs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := randomStructs{rand.New(rand.NewPCG(seed, 1))}
	var shared, others int64
	for range 200 {
		d := newStructDecoder(new(Table), r.structType(), ShareAll)
		strings := newStructDecoder(d.table, d.typ.Elem(), ShareStrings)
		texts := make([]string, 10)
		for i := range texts {
			texts[i] = r.object(1+r.IntN(4), 4)
		}
		for range 3 {
			for _, text := range texts {
				sameStruct(t, d, []byte(text))
				keenStructs(d)
				sameStruct(t, strings, []byte(text))
			}
		}
		s := d.Stats()
		shared, others = shared+s.Shared, others+s.Generated+s.Rejected
	}
	if shared < 1000 || others < 1000 {
		t.Errorf("%d objects were decoded here, %d by others: more were expected", shared, others)
	}
}
