package dedup

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
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
	// pools contains itself by turns with pool, with Quantities before and after.
	pools struct {
		Name  string             `json:"a"`
		Pools []pool             `json:"b"`
		Size  *resource.Quantity `json:"c"`
		Limit resource.Quantity  `json:"d"`
	}
	pool struct {
		ByName map[string]pools `json:"a"`
		Pools  pools            `json:"b"`
		Weight int              `json:"c"`
	}
	// counted has what JSON never fills in, or only from some texts.
	counted struct {
		Name   string            `json:"a"`
		Unread resource.Quantity `json:"-"`
		Next   []*counted        `json:"b"`
	}
	odd struct {
		Name   string               `json:"a"`
		Pair   [2]resource.Quantity `json:"b"`
		Quoted struct{ locked }     `json:"c"`
	}
	locked struct {
		mu   sync.Mutex //lint:ignore U1000 hidden state is what the test is about
		Name string     `json:"a"`
		Next *locked
	}
	// lazy keeps its text and reads it when it is asked. behindLazy has one that may be absent.
	lazy struct {
		text []byte
		Read map[string]any
	}
	behindLazy struct {
		Name string `json:"a"`
		Lazy lazy   `json:"b"`
	}
	mapReader    map[string]int
	listReader   []string
	numberReader int32
	textKey      string
)

func (l *lazy) UnmarshalJSON(data []byte) error {
	l.text = slices.Clone(data)
	return nil
}

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
		reflect.TypeFor[pools](), reflect.TypeFor[pool](), reflect.TypeFor[counted](), reflect.TypeFor[odd](), reflect.TypeFor[locked](), reflect.TypeFor[lazy](), reflect.TypeFor[behindLazy](),
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

// fitting returns a value that a type can be decoded from, mostly: fields are absent or null, too.
func (r randomStructs) fitting(t reflect.Type, depth int) string {
	var parts []string
	switch {
	case depth == 0 || r.IntN(12) == 0:
		return "null"
	case t == quantityType:
		return oneOf(r, []string{`"1Gi"`, `"1000m"`, "5", `"0.1n"`, `"123456789012345678901"`})
	case readsJSON(t):
		return oneOf(r, []string{`"a"`, `"1"`, "1", `{"a":1}`, `"2026-01-02T03:04:05Z"`, "null"})
	}
	switch t.Kind() {
	case reflect.Pointer:
		return r.fitting(t.Elem(), depth)
	case reflect.Struct:
		for _, f := range fieldpath.Fields(t) {
			if r.IntN(4) > 0 {
				parts = append(parts, string(encodeJSON(f.Name))+":"+r.fitting(f.Type, depth-1))
			}
		}
		return "{" + strings.Join(parts, ",") + "}"
	case reflect.Slice, reflect.Map:
		for i := range r.IntN(3) {
			part := r.fitting(t.Elem(), depth-1)
			if t.Kind() == reflect.Map {
				part = fmt.Sprintf(`"%d":%s`, i, part)
			}
			parts = append(parts, part)
		}
		if t.Kind() == reflect.Map {
			return "{" + strings.Join(parts, ",") + "}"
		}
		return "[" + strings.Join(parts, ",") + "]"
	case reflect.String:
		return oneOf(r, []string{`"a"`, `"a longer text"`})
	case reflect.Bool:
		return "true"
	}
	return oneOf(r, []string{"1", "7"})
}

// path returns the path of a random field of a type, or "". The API machinery makes the struct of
// an embedded pointer for a field that is cleared afterwards: paths do not lead there.
func (r randomStructs) path(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || len(fieldpath.Fields(t)) == 0 {
		return ""
	}
	f := oneOf(r, fieldpath.Fields(t))
	if _, plain, _ := place(t, f.Index); !plain {
		return ""
	}
	if deeper := r.path(f.Type); deeper != "" && r.IntN(2) == 0 {
		return f.Name + "." + deeper
	}
	return f.Name
}

// TestRandomStructs decodes random objects as random types, with and without some of their fields.
// No two of them have a value in common that writes to itself.
func TestRandomStructs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := randomStructs{rand.New(rand.NewPCG(seed, 1))}
	var shared, others int64
	compared := 0
	for range 200 {
		d := newStructDecoder(new(Table), r.structType(), ShareAll)
		decoders := []*StructDecoder{d, newStructDecoder(d.table, d.typ.Elem(), ShareStrings)}
		for range 4 {
			if less, err := d.Without(r.path(d.typ)); err == nil {
				decoders = append(decoders, less)
			}
		}
		texts := make([]string, 10)
		for i := range texts {
			if texts[i] = r.object(1+r.IntN(4), 4); i > 4 {
				texts[i] = r.fitting(d.typ.Elem(), 6)
			}
		}
		var had writers
		for range 3 {
			for _, text := range texts {
				for _, d := range decoders {
					if got := sameStruct(t, d, []byte(text)); got != nil {
						compared += had.add(t, got)
					}
					keenStructs(d)
				}
			}
		}
		s := d.Stats()
		shared, others = shared+s.Shared, others+s.Generated+s.Rejected
	}
	if shared < 1000 || others < 1000 || compared < 1000 {
		t.Errorf("%d objects were decoded here, %d by others, with %d values that write to themselves: more were expected", shared, others, compared)
	}
}
