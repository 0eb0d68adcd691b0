package dedup

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// everyKind has a field of each kind that Go structs in JSON have.
type everyKind struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Bool        bool                         `json:"bool"`
	Int         int                          `json:"int"`
	Int8        int8                         `json:"int8"`
	Int16       *int16                       `json:"int16"`
	Int64       int64                        `json:"int64,string"`
	Uint8       uint8                        `json:"uint8"`
	Uint64      *uint64                      `json:"uint64"`
	Float32     float32                      `json:"float32"`
	Float64     *float64                     `json:"float64"`
	Number      json.Number                  `json:"number"`
	String      named                        `json:"string"`
	Pointer     *string                      `json:"pointer"`
	Pointers    **string                     `json:"pointers"`
	Bytes       []byte                       `json:"bytes"`
	Numbers     []int32                      `json:"numbers"`
	Strings     []named                      `json:"strings"`
	Lists       [][]string                   `json:"lists"`
	Structs     []*inner                     `json:"structs"`
	Array       [2]int                       `json:"array"`
	Any         any                          `json:"any"`
	Anys        []any                        `json:"anys"`
	Object      map[string]any               `json:"object"`
	Map         map[named]named              `json:"map"`
	MapOfMaps   map[string]map[string]string `json:"mapOfMaps"`
	MapOfLists  map[string][]string          `json:"mapOfLists"`
	MapOfInner  map[string]inner             `json:"mapOfInner"`
	MapOfBytes  map[string][]byte            `json:"mapOfBytes"`
	ByNumber    map[int32]string             `json:"byNumber"`
	ByAddress   map[netip.Addr]string        `json:"byAddress"`
	Interface   fmt.Stringer                 `json:"interface"`
	Func        func()                       `json:"func"`
	Empty       *struct{}                    `json:"empty"`
	Empties     []struct{}                   `json:"empties"`
	Time        *metav1.Time                 `json:"time"`
	Times       map[string]metav1.Time       `json:"times"`
	Duration    *metav1.Duration             `json:"duration"`
	Quantity    *resource.Quantity           `json:"quantity"`
	Quantities  []resource.Quantity          `json:"quantities"`
	IntOrString *intstr.IntOrString          `json:"intOrString"`
	Ports       []intstr.IntOrString         `json:"ports"`
	Raw         *json.RawMessage             `json:"raw"`
	Schema      *rawSchema                   `json:"schema"`
	Address     *netip.Addr                  `json:"address"`
	Reader      *reader                      `json:"reader"`
	Upper       upper                        `json:"upper"`
	Unnamed     struct{ metav1.Time }        `json:"unnamed"`
	hiddenRaw   `json:"hiddenRaw"`
	hiddenUpper `json:"hiddenUpper"`
	Skipped     string `json:"-"`
	Untagged    string
	First       `json:",inline"`
	Second
	*Behind
	unexported
}

type (
	named string
	inner struct {
		Name   string           `json:"name"`
		Value  any              `json:"value"`
		Within map[string]inner `json:"within"`
		Next   *inner           `json:"next"`
	}
	First struct {
		Both   string // in Second too: neither counts
		Tagged string `json:"Picked"`
	}
	Second struct {
		Both   string
		Picked string // First has a tag for it, which counts
		Own    string
	}
	Behind     struct{ Far string }
	unexported struct{ Near string }
	// rawSchema keeps its JSON, as the JSON of apiextensions does.
	rawSchema struct{ Raw []byte }
	// reader refuses some values, and has a field that may not be shared.
	reader struct {
		text  *string
		Value string
	}
	upper string
	// The methods of these are not called where they are embedded, because that is not exported.
	hiddenRaw   rawSchema
	hiddenUpper struct{ Text string }
)

func (h *hiddenRaw) UnmarshalJSON(data []byte) error { return (*rawSchema)(h).UnmarshalJSON(data) }

func (h *hiddenUpper) UnmarshalJSON(data []byte) error {
	h.Text = string(data)
	return nil
}

func (s *rawSchema) UnmarshalJSON(data []byte) error {
	s.Raw = append(s.Raw[:0], data...)
	return nil
}

func (r *reader) UnmarshalJSON(data []byte) error {
	if r.text = new(string(data)); *r.text == "1" {
		return errors.New("1 is refused")
	}
	r.Value = *r.text
	return nil
}

func (u *upper) UnmarshalText(text []byte) error {
	*u = upper(strings.ToUpper(string(text)))
	return nil
}

// manyKinds is an object of everyKind with values that are shared.
const manyKinds = `{"kind":"A","metadata":{"name":"b"},"bool":true,"int16":7,"pointer":"c","bytes":"YQ==","numbers":[1,2],"strings":["d",null],` +
	`"lists":[["e"],[]],"structs":[{"name":"f","value":[1,{"g":2.5}],"next":{}},null],"anys":["h",{}],"object":{"i":["\u006a"]},"map":{"k":"l"},` +
	`"mapOfLists":{"m":["n"]},"mapOfInner":{"o":{"name":"p","within":{"q":{}}}},"time":"2026-01-02T03:04:05Z","quantity":"1Gi","ports":[1,"r"],"raw":{"s":[]},"schema":{"t":1},"reader":2,"upper":"u"}`

// oddFields are objects with one field of everyKind, whose value is odd in turn.
func oddFields() (texts []string) {
	for _, name := range append(jsonNames(reflect.TypeFor[everyKind]()), "Bool", "Both", "Picked", "Own", "Far", "Near", "hiddenRaw", "hiddenUpper", "Skipped", "Untagged") {
		for _, value := range deduptest.OddValues {
			texts = append(texts, `{"`+name+`":`+value+`}`, `{"`+name+`":[`+value+`,`+value+`]}`, `{"`+name+`":{"a":`+value+`,"b":`+value+`}}`)
		}
	}
	return texts
}

func jsonNames(t reflect.Type) (names []string) {
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !strings.Contains(name, `"`) {
			names = append(names, name)
		}
	}
	return names
}

// TestEveryKind decodes values of all kinds into fields of all kinds.
func TestEveryKind(t *testing.T) {
	d := newStructDecoder(new(Table), reflect.TypeFor[everyKind](), ShareAll)
	for range 2 {
		for _, text := range oddFields() {
			sameStruct(t, d, []byte(text))
		}
		keenStructs(d)
	}
	for _, text := range append(jsonTexts(), ` {"bool":true} `, `{"int":1,"int":2}`, `{"structs":[{"name":"a"}],"structs":[{"value":1}]}`, `{"object":{"a":1,"a":{}}}`,
		`{"mapOfInner":{"a":{"name":"x","within":{"b":{"value":[1]},"b":{"name":"y"}}},"a":{}}}`, `{"map":{"a":"b","a":null}}`) {
		sameStruct(t, d, []byte(text))
		keenStructs(d)
		sameStruct(t, d, []byte(text))
	}
	if s := d.Stats(); s.Shared < s.Generated || s.Rejected == 0 {
		t.Errorf("%+v: most of what is valid should be decoded here", s)
	}
}

// TestOddTags decodes fields whose tags are odd, and one that is not exported.
func TestOddTags(t *testing.T) {
	typ := reflect.StructOf([]reflect.StructField{
		{Name: "Dash", Type: reflect.TypeFor[string](), Tag: `json:"-,"`},
		{Name: "Quote", Type: reflect.TypeFor[string](), Tag: `json:"bad\"name"`},
		{Name: "Space", Type: reflect.TypeFor[string](), Tag: `json:"a b"`},
		{Name: "Twice", Type: reflect.TypeFor[string](), Tag: `json:"a b"`},
		{Name: "hidden", PkgPath: "a", Type: reflect.TypeFor[string]()},
	})
	d := newStructDecoder(new(Table), typ, ShareAll)
	for _, name := range []string{"-", "Dash", `bad\"name`, "Quote", "a b", "Space", "Twice", "hidden"} {
		sameStruct(t, d, []byte(`{"`+name+`":"x"}`))
	}
	if s := d.Stats(); s.Shared != 8 {
		t.Errorf("%+v", s)
	}
}

// TestTypesWithoutADecoder names why some types are left to the API machinery.
func TestTypesWithoutADecoder(t *testing.T) {
	for why, example := range map[string]any{
		"secrets":               &struct{ Secrets []corev1.Secret }{},
		"UnmarshalJSON":         &rawSchema{},
		"not a pointer":         everyKind{},
		"is no struct":          &map[string]string{},
		"more than 255 fields":  reflect.New(wideStruct()).Interface(),
		"<nil> is not a pointe": nil,
	} {
		err := NewStructDecoder(new(Table), schema.GroupVersionKind{}, example, ShareAll).Shares()
		if err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%T: %v, should say %q", example, err, why)
		}
	}
}

func wideStruct() reflect.Type {
	var fields []reflect.StructField
	for i := range 256 {
		fields = append(fields, reflect.StructField{Name: fmt.Sprint("F", i), Type: reflect.TypeFor[int]()})
	}
	return reflect.StructOf(fields)
}

// decodeStructs3 decodes data until everything in it that is shared is, and returns the last two
// objects.
func decodeStructs3[T any](t *testing.T, d *StructDecoder, data []byte) (first, second *T) {
	t.Helper()
	for range 3 {
		first, second = second, new(T)
		if shared, err := d.Unmarshal(data, second); err != nil || !shared {
			t.Fatalf("shared %v: %v", shared, err)
		}
		keenStructs(d)
	}
	return first, second
}

// TestStructsShareParts compares the memory of two pods from the same bytes, with each kind of
// sharing, and of pods from other bytes.
func TestStructsShareParts(t *testing.T) {
	c := newCorpus(7, 1)
	data := encodeJSON(c.pod(c.workload(3)))
	typ := reflect.TypeFor[corev1.Pod]()
	common := func(a, b any) (n int) {
		had := memories(reflect.ValueOf(a), nil)
		for at := range memories(reflect.ValueOf(b), nil) {
			if had[at] != nil {
				n++
			}
		}
		return n
	}
	table := new(Table)
	d := newStructDecoder(table, typ, ShareAll)
	first, second := decodeStructs3[corev1.Pod](t, d, data)
	if n := common(first, second); n < 20 || &first.Spec.Containers[0] != &second.Spec.Containers[0] || first == second {
		t.Errorf("%d parts are in common", n)
	}
	mine, other := decodeStructs3[corev1.Pod](t, newStructDecoder(table, typ, ShareStrings), data)
	if n := common(mine, other) + common(first, other); n != 0 {
		t.Errorf("%d parts are in common with pods that may be changed", n)
	}
	if unsafe.StringData(mine.Spec.Containers[0].Image) != unsafe.StringData(other.Spec.Containers[0].Image) {
		t.Error("an image is in memory twice")
	}
	scrambled, _ := decodeStructs3[corev1.Pod](t, d, encodeJSON(c.scrambled()))
	for at, typ := range memories(reflect.ValueOf(scrambled), nil) {
		if had := memories(reflect.ValueOf(first), nil)[at]; had != nil && typ.Kind() != reflect.Pointer { // numbers may be the same
			t.Errorf("a %v of a pod is in one from other bytes", had)
		}
	}
	runtime.KeepAlive([]any{first, second, mine, other})
}

// TestExpectedPartsAreNotCut decodes the same pod again, while its parts are in use and when they
// are gone.
func TestExpectedPartsAreNotCut(t *testing.T) {
	c := newCorpus(7, 1)
	data := encodeJSON(c.pod(c.workload(3)))
	d := newStructDecoder(new(Table), reflect.TypeFor[corev1.Pod](), ShareAll)
	closed := func() (n int) {
		for _, token := range d.plan.structs.workers[ShareAll][0].tokens.All {
			if token.Closed {
				n++
			}
		}
		return n
	}
	first, second := decodeStructs3[corev1.Pod](t, d, data)
	third := sameStruct(t, d, data)
	if n := closed(); n == 0 {
		t.Error("no part was expected")
	}
	runtime.KeepAlive([]any{first, second, third})
	runtime.GC()
	sameStruct(t, d, data)
	changed := strings.Replace(string(data), `"IfNotPresent"`, `"Always"`, 1)
	if changed == string(data) {
		t.Fatal("the pod has no such policy")
	}
	sameStruct(t, d, []byte(changed))
}

// TestStructsWithoutAreNotShared has two decoders of one table decode the same bytes, one of them
// without fields.
func TestStructsWithoutAreNotShared(t *testing.T) {
	c := newCorpus(1, 3)
	data := encodeJSON(c.pod(c.workload(1)))
	whole := newStructDecoder(new(Table), reflect.TypeFor[corev1.Pod](), ShareAll)
	less, err := whole.Without("spec.containers.env", "metadata.managedFields")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		with, _ := decodeStructs3[corev1.Pod](t, whole, data)
		a, b := decodeStructs3[corev1.Pod](t, less, data)
		if len(with.Spec.Containers[0].Env) == 0 || len(with.ManagedFields) == 0 || a.Spec.Containers[0].Env != nil || a.ManagedFields != nil {
			t.Fatal("a pod has what its decoder leaves out, or lacks what another one leaves out")
		}
		if &a.Spec.Containers[0] != &b.Spec.Containers[0] || &a.Spec.Volumes[0] != &with.Spec.Volumes[0] {
			t.Error("pods without a field do not share")
		}
	}
	if _, err := whole.Without("spec.containers.environment"); err == nil || !strings.Contains(err.Error(), `"environment"`) {
		t.Errorf("a field that is not there: %v", err)
	}
	if _, err := whole.Unmarshal(data, &corev1.Node{}); err == nil || !strings.Contains(err.Error(), "*v1.Node") {
		t.Errorf("into another type: %v", err)
	}
}

// TestNoQuantityIsInTwoStructs: its methods write to it.
func TestNoQuantityIsInTwoStructs(t *testing.T) {
	data := []byte(`{"quantity":"1.5Gi","quantities":["1","2"],"mapOfInner":{"a":{"name":"b"}},"reader":"x","schema":{"a":"b"}}`)
	a, b := decodeStructs3[everyKind](t, newStructDecoder(new(Table), reflect.TypeFor[everyKind](), ShareAll), data)
	if a.Quantity == b.Quantity || &a.Quantities[0] == &b.Quantities[0] || a.Reader == b.Reader {
		t.Error("what must not be shared is")
	}
	if a.Schema != b.Schema || reflect.ValueOf(a.MapOfInner).Pointer() != reflect.ValueOf(b.MapOfInner).Pointer() {
		t.Error("what may be shared is not")
	}
}

// TestStructsOfSecretsAreNotKept decodes Secrets into a type that is not that of Secrets.
func TestStructsOfSecretsAreNotKept(t *testing.T) {
	type custom struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Data              map[string][]byte `json:"data"`
	}
	const text = `{"metadata":{"name":"a"},"data":{"password":"c2VjcmV0c2VjcmV0c2VjcmV0"},"kind":"%s"}`
	for kind, o := range map[string]schema.GroupVersionKind{
		"Secret": {}, "Sec\\u0072et": {}, "": {Version: "v1", Kind: "Secret"},
	} {
		table := new(Table)
		d := NewStructDecoder(table, o, &custom{}, ShareAll)
		for range 3 {
			var got custom
			if shared, err := d.Unmarshal(fmt.Appendf(nil, text, kind), &got); err != nil || shared || len(got.Data) != 1 {
				t.Errorf("%q: shared %v, %v", kind, shared, err)
			}
		}
		if s := table.Stats(); s.Kept+s.Misses != 0 || d.Stats().Generated != 3 {
			t.Errorf("%q: %+v, %+v", kind, s, d.Stats())
		}
	}
}

// TestEmbeddedSecrets: a type that embeds a Secret contains one.
func TestEmbeddedSecrets(t *testing.T) {
	type within struct {
		Name           string
		*corev1.Secret `json:"secret"`
	}
	for _, example := range []any{&struct{ corev1.Secret }{}, &struct{ List []struct{ corev1.Secret } }{}, &within{}, &struct{ *corev1.Secret }{}} {
		if err := NewStructDecoder(new(Table), schema.GroupVersionKind{}, example, ShareAll).Shares(); err != errSecret {
			t.Errorf("%T: %v", example, err)
		}
	}
}

// TestHiddenFieldsAreNotShared: a field that is not exported may be a lock, or a cache that
// methods write to.
func TestHiddenFieldsAreNotShared(t *testing.T) {
	type locked struct {
		mu   sync.Mutex
		Name string
	}
	type object struct {
		Behind *locked
		Two    []struct{ locked }
		ByName map[string]*locked
		Plain  *inner
	}
	data := []byte(`{"Behind":{"Name":"a"},"Two":[{"Name":"b"}],"ByName":{"c":{"Name":"d"}},"Plain":{"name":"e"}}`)
	a, b := decodeStructs3[object](t, newStructDecoder(new(Table), reflect.TypeFor[object](), ShareAll), data)
	a.Behind.mu.Lock()
	if a.Behind == b.Behind || &a.Two[0] == &b.Two[0] || a.ByName["c"] == b.ByName["c"] {
		t.Error("two objects have a lock in common")
	}
	if a.Plain != b.Plain || b.Two[0].Name != "b" || b.ByName["c"].Name != "d" {
		t.Errorf("%+v, %+v", a, b)
	}
}

// TestBytesAreNotKept decodes many bytes once: the worker does not keep as many.
func TestBytesAreNotKept(t *testing.T) {
	d := newStructDecoder(new(Table), reflect.TypeFor[corev1.ConfigMap](), ShareAll)
	data := encodeJSON(&corev1.ConfigMap{BinaryData: map[string][]byte{"a": make([]byte, 8<<20)}})
	before, _ := memory()
	sameStruct(t, d, data)
	if after, _ := memory(); after > before+1<<20 {
		t.Errorf("%d bytes are kept", after-before)
	}
	runtime.KeepAlive(data)
	runtime.KeepAlive(d)
}

// TestStructQuantitiesThatTakeHours are refused.
func TestStructQuantitiesThatTakeHours(t *testing.T) {
	d := newStructDecoder(new(Table), reflect.TypeFor[everyKind](), ShareAll)
	for _, text := range []string{`"1e-999999999"`, `1e-99`, `"1e-99999"`} {
		begin := time.Now()
		_, err := d.Unmarshal([]byte(`{"quantity":`+text+`}`), &everyKind{})
		if (err == ErrQuantity) != (text == `"1e-999999999"`) {
			t.Errorf("%s after %v: %v", text, time.Since(begin), err)
		}
	}
}
