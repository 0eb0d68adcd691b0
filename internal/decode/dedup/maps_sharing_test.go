package dedup

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mapTwice decodes data until everything in it that is shared is, and returns the last two
// objects.
func mapTwice(t *testing.T, d *MapDecoder, data []byte) (first, second map[string]any) {
	t.Helper()
	for range 4 {
		first, second = second, sameMap(t, d, data)
		keenMaps(d.table)
	}
	if s := d.Stats(); s.Generated != 0 {
		t.Fatalf("%+v: the object was left to the API machinery", s)
	}
	return first, second
}

// at returns the value in an object behind names and indexes.
func at(v any, path ...any) any {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			v = v.(map[string]any)[step]
		case int:
			v = v.([]any)[step]
		}
	}
	return v
}

// oneInMemory reports whether two values are at the same place.
func oneInMemory(a, b any) bool { return efaceOf(a) == efaceOf(b) }

func aCustomResource() []byte {
	c := newCorpus(7, 1)
	return c.widget(c.workload(3))
}

func TestRepeatedPartsOfMapsAreOne(t *testing.T) {
	a, b := mapTwice(t, NewMapDecoder(new(Table), widgets, ShareAll, nil), aCustomResource())
	if oneInMemory(a, b) {
		t.Error("two objects are one")
	}
	for _, path := range [][]any{
		{"spec"}, {"metadata", "labels"}, {"metadata", "managedFields", 0, "fieldsV1"}, {"status", "conditions"}, {"kind"}, {"spec", "ratio"}, {"spec", "weights", 1},
	} {
		if !oneInMemory(at(a, path...), at(b, path...)) {
			t.Errorf("%v of two equal objects is there twice", path)
		}
	}
	if !oneInMemory(at(a, "spec", "selector"), at(b, "metadata", "labels")) {
		t.Error("equal labels in two places are there twice")
	}
	for name := range a {
		for other := range b {
			if name == other && unsafe.StringData(name) != unsafe.StringData(other) {
				t.Errorf("the name %s is there twice", name)
			}
		}
	}
}

// TestMapsWithStringsOnly decodes objects that may be changed.
func TestMapsWithStringsOnly(t *testing.T) {
	for _, data := range [][]byte{aCustomResource(), []byte(`{"a":{},"b":[],"c":[{},{}],"d":{"e":{"f":[[]]}}}`)} {
		d := NewMapDecoder(new(Table), widgets, ShareStrings, nil)
		a, b := mapTwice(t, d, data)
		inA := memories(reflect.ValueOf(a), nil)
		for p, typ := range memories(reflect.ValueOf(b), nil) {
			if inA[p] != nil {
				t.Errorf("two objects have a %v in common", typ)
			}
		}
		if _, has := a["kind"]; has && !oneInMemory(a["kind"], b["kind"]) {
			t.Error("the kind of two objects is there twice")
		}
		if s := d.table.Stats(); s.Values != 0 {
			t.Errorf("%+v: only strings should be in the table", s)
		}
	}
}

// TestSecretMapsStayOut decodes Secrets of which the decoder or only the object says so.
func TestSecretMapsStayOut(t *testing.T) {
	table := new(Table)
	for kind, text := range map[string]string{
		"Secret": `{"data":{"a":"hunter2"}}`, "": `{"apiVersion":"v1","kind":"Secret","data":{"a":"hunter2"}}`,
		"List": `{"data":{"a":"hunter2"},"kind":"\u0053ecret"}`, "Pod": `{"kind":"Pod","items":[{"data":{"a":"hunter2"}}],"kind":"SecretList"}`,
	} {
		d := NewMapDecoder(table, schema.GroupVersionKind{Version: "v1", Kind: kind}, ShareAll, nil)
		for range 4 {
			sameMap(t, d, []byte(text))
			keenMaps(table)
		}
		if s := d.Stats(); s != (DecoderStats{Generated: 4}) || (d.Shares() != nil) != (kind == "Secret") {
			t.Errorf("kind %q: %+v, %v", kind, s, d.Shares())
		}
	}
	if s := table.Stats(); s.Kept != 0 || s.Values+s.Strings != 0 {
		t.Errorf("the table has kept something of Secrets: %+v", s)
	}
}

// TestDroppedFields leaves fields out. Only values without such fields are shared with whole
// objects.
func TestDroppedFields(t *testing.T) {
	table := new(Table)
	text := []byte(`{"metadata":{"name":"a","managedFields":[{"manager":"x"}]},"spec":{"list":[[{"env":[1],"name":"n"}],{"env":2,"name":"m"}],"env":3},"env":4}`)
	less := NewMapDecoder(table, widgets, ShareAll, dropped(t, "metadata.managedFields", "spec.list.env"))
	whole := NewMapDecoder(table, widgets, ShareAll, nil)
	var object map[string]any
	for range 4 {
		sameMap(t, whole, text)
		object = sameMap(t, less, text)
		keenMaps(table)
	}
	want := `{"env":4,"metadata":{"name":"a"},"spec":{"env":3,"list":[[{"name":"n"}],{"name":"m"}]}}`
	if got := encodeJSON(object); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if !oneInMemory(object["spec"], sameMap(t, less, text)["spec"]) {
		t.Error("what is left of two equal parts is there twice")
	}
	for _, bad := range []string{`{"metadata":{"managedFields":[}}`, `{"metadata":{"managedFields":"\x"}}`, `{"metadata":{"managedFields":1e999}}`} {
		sameMap(t, less, []byte(bad))
	}
}

// TestMapsAreTheirOwn sets the kind of an object, as it does for the items
// of lists.
func TestMapsAreTheirOwn(t *testing.T) {
	d := NewMapDecoder(new(Table), widgets, ShareAll, nil)
	text := []byte(`{"metadata":{"name":"a"},"spec":{"a":["b"]}}`)
	for range 6 {
		object := sameMap(t, d, text)
		if object["kind"] != nil {
			t.Fatal("the map of an object is that of another")
		}
		object["kind"] = "Widget"
		spec := object["spec"].(map[string]any)["a"].([]any)
		if cap(spec) != len(spec) {
			t.Error("to append to a shared slice would write to it")
		}
		keenMaps(d.table)
	}
}

// TestTextsAreNotKept decodes a few bytes out of large texts; the values are checked
// after the texts were overwritten, by sameMap, and must not keep them alive.
func TestTextsAreNotKept(t *testing.T) {
	for _, sharing := range []Sharing{ShareAll, ShareStrings, ShareNothing} {
		d := NewMapDecoder(new(Table), widgets, sharing, dropped(t, "blob"))
		live, _ := memory()
		var kept []map[string]any
		for i := range 64 {
			text := fmt.Sprintf(`{"blob":"%s","metadata":{"name":"n%d","labels":{"a":"b%d","esc":"\n"}},"list":["x","y%d"],"k%d":{"z":1}}`, strings.Repeat("x", 1<<18), i, i%3, i, i)
			object, err := d.Unmarshal([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, object)
		}
		after, _ := memory()
		if took := int64(after) - int64(live); took > 64*(1<<14) {
			t.Errorf("sharing %d: 64 small objects keep %d bytes", sharing, took)
		}
		if kept[63]["k63"] == nil {
			t.Error("an object is not whole")
		}
	}
}

// TestMapWorkersForget decodes an endless variety of names come by: the paths of a worker stay
// bounded, and names that do not come again are not learned.
func TestMapWorkersForget(t *testing.T) {
	d := NewMapDecoder(new(Table), widgets, ShareAll, nil)
	for round := range 60 {
		for range 2 {
			var fields []string
			for i := range 500 {
				fields = append(fields, fmt.Sprintf(`"name-%d-%d":{"a":%d}`, round, i, i))
			}
			sameMap(t, d, []byte("{"+strings.Join(fields, ",")+"}"))
		}
	}
	for _, w := range d.table.maps.workers[ShareAll] {
		if n, index := len(w.paths.nodes), len(w.paths.index); n > maxPaths || index > n {
			t.Errorf("%d paths, an index of %d", n, index)
		}
	}
	sameMap(t, d, aCustomResource())
}

// TestMemoryOfMaps measures the gain of sharing: custom resources of 60 workloads
// take at most a third of the heap, and a tenth of the allocations, that the API machinery
// needs; those that have nothing in common do not take more.
func TestMemoryOfMaps(t *testing.T) {
	c := newCorpus(1, 20)
	all := c.widgets(60)
	shared, alone := keepAll(all, decodeMaps(t, ShareAll)), keepAll(all, decodeMaps(t, ShareNothing))
	t.Logf("%d bytes of JSON: %.0f bytes and %.0f allocations instead of %.0f and %.0f", size(all), shared.heap, shared.mallocs, alone.heap, alone.mallocs)
	if shared.heap > alone.heap/3 || shared.mallocs > alone.mallocs/10 {
		t.Errorf("shared %+v, alone %+v", shared, alone)
	}
	var scrambled [][]byte
	for range 500 {
		scrambled = append(scrambled, c.scrambledWidget())
	}
	shared, alone = keepAll(scrambled, decodeMaps(t, ShareAll)), keepAll(scrambled, decodeMaps(t, ShareNothing))
	t.Logf("without repetition: %.0f bytes and %.0f allocations instead of %.0f and %.0f", shared.heap, shared.mallocs, alone.heap, alone.mallocs)
	if shared.heap > alone.heap*1.05 || shared.mallocs > alone.mallocs/2 {
		t.Errorf("without repetition: %+v, alone %+v", shared, alone)
	}
}
