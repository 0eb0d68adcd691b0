package dedup

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unsafe"
	"weak"

	corev1 "k8s.io/api/core/v1"
)

// node is a type such as no built-in API has: it contains itself, and maps to
// messages with strings in them.
type node struct {
	Name  string
	Next  *node
	Named map[string]node
}

// nodeRun returns a run for nodes and their program, which is put together by hand as
// the type has no generated code.
func nodeRun() (*run, *program) {
	table := new(Table)
	table.start()
	p := &program{typ: reflect.TypeFor[node]()}
	plan := &plan{program: p, sites: 3, makers: []reflect.Type{p.typ}, maps: []reflect.Type{reflect.TypeFor[map[string]node]()}}
	for i, f := range []field{
		{op: opString, shape: textShape},
		{op: opMessagePointer, program: p, element: unsafe.Sizeof(node{}), shape: &shape{1}},
		{op: opMap, mapping: &mapping{typ: plan.maps[0], op: opMessage, value: p}, element: 8, shape: &shape{2}},
	} {
		f.site = int32(i)
		if err := p.add(f, i+1, p.typ.Field(i).Offset); err != nil {
			panic(err)
		}
	}
	return newRun(table, plan, ShareAll), p
}

// encodeNext returns a chain of that many nodes.
func encodeNext(length int) []byte {
	var data []byte
	for range length {
		head := []byte{2<<3 | wireBytes}
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
	r, p := nodeRun()
	for length, ok := range map[int]bool{maxDepth: true, maxDepth + 1: false, 10_000: false} {
		var n node
		if got := r.object(p, encodeNext(length), unsafe.Pointer(&n)); got != ok {
			t.Errorf("%d messages in each other: decoded %v", length, got)
		}
	}
}

// TestStringsInMapsOfMessages decodes maps, small and large, whose values hold
// strings: they must be set when the value is put into the map.
func TestStringsInMapsOfMessages(t *testing.T) {
	for _, count := range []int{3, 3000} {
		var data []byte
		want := map[string]node{}
		for i := range count {
			name := fmt.Sprint("node ", i)
			want[name] = node{Name: name}
			data = append(data, lengthy(3, join(lengthy(1, []byte(name)...), lengthy(2, lengthy(1, []byte(name)...)...))...)...)
		}
		r, p := nodeRun()
		for range 3 {
			var n node
			if !r.object(p, data, unsafe.Pointer(&n)) || !reflect.DeepEqual(n.Named, want) {
				t.Fatalf("%d entries: decoded as %d", count, len(n.Named))
			}
		}
		var inside node // a map in a value of a map of the same type is not understood
		if r.object(p, lengthy(3, join(lengthy(1, 'a'), lengthy(2, lengthy(3, lengthy(1, 'b')...)...))...), unsafe.Pointer(&inside)) {
			t.Error("decoded a map inside a map with one space for the entries of both")
		}
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
