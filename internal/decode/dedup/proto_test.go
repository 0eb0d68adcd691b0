package dedup

import (
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings/internal/decode/wire"
)

// node is a type such as no built-in API has: it contains itself, and maps to
// messages with strings in them.
type node struct {
	Name  string
	Next  *node
	Named map[string]node
}

// nodeWorker returns a worker for nodes. Their layout is put together by hand, as the type
// has no generated code.
func nodeWorker() *protoWorker {
	table := new(Table)
	table.init()
	named := reflect.TypeFor[map[string]node]()
	l := &layout{typ: reflect.TypeFor[node](), size: unsafe.Sizeof(node{}), kind: kindStruct}
	nodes := &layout{typ: named, index: 1, kind: kindMap, maps: mapOfOthers, elem: l}
	l.byNumber = []uint8{0, 1, 2, 3}
	l.fields = []field{
		{kind: kindString},
		{kind: kindPointer, elem: l, size: 8, space: new(keySpace)},
		{kind: kindMap, elem: nodes, size: 8, space: new(keySpace)},
	}
	for i := range l.fields {
		f := &l.fields[i]
		f.stats, f.offset = int32(i), l.typ.Field(i).Offset
		f.tag = uint32(i+1)<<3 | wire.BytesType
	}
	plan := &plan{root: l, stats: 3, types: []reflect.Type{l.typ, named}}
	return newProtoWorker(table, plan, ShareAll)
}

// encodeNext returns a chain of that many nodes.
func encodeNext(length int) []byte {
	var data []byte
	for range length {
		head := []byte{2<<3 | wire.BytesType}
		for n := len(data); ; n >>= 7 {
			if n < 0x80 {
				head = append(head, byte(n))
				break
			}
			head = append(head, byte(n)|0x80)
		}
		data = append(head, data...)
	}
	return data
}

func TestDepthIsBounded(t *testing.T) {
	w := nodeWorker()
	for length, ok := range map[int]bool{maxDepth: true, maxDepth + 1: false, 10_000: false} {
		var n node
		if got, _ := w.decode(kindOf{}, encodeNext(length), unsafe.Pointer(&n)); got != ok {
			t.Errorf("%d messages in each other: decoded %v", length, got)
		}
	}
}

// TestMapInAMap decodes a map in a value of a map of the same type, and an entry after it.
func TestMapInAMap(t *testing.T) {
	w := nodeWorker()
	data := join(lengthy(3, join(lengthy(1, 'a'), lengthy(2, lengthy(3, lengthy(1, 'b')...)...))...), lengthy(3, lengthy(1, 'c')...))
	want := node{Named: map[string]node{"a": {Named: map[string]node{"b": {}}}, "c": {}}}
	var got node
	if ok, _ := w.decode(kindOf{}, data, unsafe.Pointer(&got)); !ok || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestStringsDoNotKeepMuch keeps one string of a large object: the other large
// parts of it must be gone.
func TestStringsDoNotKeepMuch(t *testing.T) {
	large := strings.Repeat("large ", 5000)
	d := NewDecoder(new(Table), &corev1.ConfigMap{}, ShareAll)
	m := &corev1.ConfigMap{}
	if err := d.Unmarshal(encode(&corev1.ConfigMap{Data: map[string]string{"small": "kept", "large": large}}), m); err != nil {
		t.Fatal(err)
	}
	kept, gone := m.Data["small"], weak.Make(unsafe.StringData(m.Data["large"]))
	object := weak.Make(m)
	m = nil
	runtime.GC()
	if gone.Value() != nil {
		t.Error("a string of a config map keeps one of 30 KB")
	}
	if object.Value() != nil {
		t.Error("the decoder keeps the last object")
	}
	runtime.KeepAlive(kept)
	runtime.KeepAlive(d)
}
