package dedup

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

var widgets = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}

// keenMaps makes the workers of a table try everywhere and keep everything at once.
func keenMaps(t *Table) {
	for _, workers := range t.maps.workers {
		for _, w := range workers {
			for i := range w.paths.nodes {
				n := &w.paths.nodes[i]
				n.strings, n.nested = keenStats, keenStats
			}
		}
	}
}

// sameMap decodes data and compares verdict and value with the API machinery's.
func sameMap(t testing.TB, d *MapDecoder, data []byte) map[string]any {
	t.Helper()
	frame := slices.Clone(data)
	got, err := d.Unmarshal(frame)
	deduptest.Overwrite(t, frame, data)
	var want map[string]any
	wantErr := utiljson.Unmarshal(data, &want)
	if wantErr == nil {
		d.drop.Remove(want)
	}
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("%q: error %v, want %v", data, err, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\ngot  %#v\nwant %#v", data, got, want)
	}
	return got
}

// compareMaps decodes data in all ways after an object that left its parts in the table.
func compareMaps(t testing.TB, before, data []byte, drop fieldpath.Tree) {
	t.Helper()
	for _, sharing := range []Sharing{ShareAll, ShareStrings, ShareNothing} {
		table := new(Table)
		d, whole := NewMapDecoder(table, widgets, sharing, drop), NewMapDecoder(table, widgets, sharing, nil)
		decode := func(d *MapDecoder, data []byte) map[string]any {
			defer keenMaps(table)
			return sameMap(t, d, data)
		}
		decode(d, before)
		decode(d, before)
		first, again := decode(d, data), decode(d, data)
		decode(d, before)
		decode(whole, data)
		decode(whole, data)
		if last := decode(d, data); !reflect.DeepEqual(first, last) || !reflect.DeepEqual(again, last) {
			t.Fatalf("%q: decoding others changed what was decoded before:\nnow %#v\nand %#v\nwas %#v", data, first, again, last)
		}
	}
}

// jsonTexts are texts that decoders differ in.
func jsonTexts() []string {
	texts := []string{
		``, ` `, `{`, `}`, `null`, ` null `, `true`, `[]`, `"a"`, `1`, `{}`, ` { } `, `{}x`, `{} {}`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1 "b":2}`,
		`{a:1}`, `{'a':1}`, `{"a":[1,]}`, `{"a":[,1]}`, `{"a":[1 2]}`, `{"a":[}`, `{"a":[1}`, `{"a":nul}`, `{"a":nulll}`, `{"a":True}`, "\xef\xbb\xbf{}", "{}\x00",
		`{"a":"x","a":"y"}`, `{"a":{"b":1},"a":{"c":2}}`, `{"a":[1,2],"a":[3]}`, `{"a":1,"a":null}`, `{"a":{"b":1,"b":2}}`, `{"":"","":{"":[]}}`,
		`{"a":{},"b":[],"c":[[]],"d":[{}],"e":{"f":{}}}`, `{"a":[null,true,false,"",0]}`, "{\"a\":\t1\r\n}", "{\"a\":\v1}", "{\"a\":\"\t\"}", "{\"a\":\"\x7f\"}",
	}
	for _, n := range []string{
		"0", "-0", "00", "01", "-01", "-", "+1", "1.", ".5", "0.5", "-0.5", "-0.0", "1.0", "1e3", "1E3", "1e+3", "1e-3", "1e", "1e+", "0e0", "-0e1", "1.5e2", "1e22", "1e99",
		"1e100", "1e308", "1e309", "-1e400", "1e-400", "5e-324", "2e-324", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"123456789012345678", "1234567890123456789", "-999999999999999999", "18446744073709551615", "9007199254740993", "9007199254740993.0", "0.1", "0x1", "1_0", "NaN", "Infinity", "-Infinity", "1f", "255", "256", "-1",
		strings.Repeat("9", 200), strings.Repeat("9", 201), strings.Repeat("9", 309), strings.Repeat("9", 400), "0." + strings.Repeat("0", 300) + "1", strings.Repeat("0", 2), "1" + strings.Repeat("0", 150) + "e99", "0." + strings.Repeat("3", 190),
	} {
		texts = append(texts, `{"a":`+n+`}`, `{"a":[`+n+`,`+n+`],"b":{"c":`+n+`}}`)
	}
	for _, s := range []string{
		`\"`, `\\`, `\/`, `\b\f\n\r\t`, `\a`, `\'`, `\u0041`, `\u00`, `\u00zz`, `\uD83D\uDE00`, `\ud83d\ude00`, `\ud83d`, `\ud83dx`, `\ud83d\n`, `\ud83d\u0041`, `\ud83d\ud83d\ude00`, `\ude00`, `\ude00\ud83d`,
		`\u0000`, `\uFFFD`, `\uffff`, `\u2028`, "\u2028", "é", "\U0001F600", "\xff", "a\xffb", "\xc3", "\xc3(", "\xe2\x82", "\xed\xa0\x80", "\xed\xa0\xbd\xed\xb8\x80", "\xf4\x90\x80\x80", "\xc0\x80", `\`, `\u`, `\ud83d\u`, `\ud83d\`, "\x00", "\x1f", "a\nb",
		"abcdefgh", "abcdefg\\n", "abcdefgh\x01", "\x80abcdefgh", "abcdefghé", `k:{\"uid\":\"1\"}`, `\u003ca\u003e \u0026`, "\xe2\x80\xa8", strings.Repeat("x", 300), strings.Repeat("é", 600), strings.Repeat(`\n`, 300),
	} {
		texts = append(texts, `{"a":"`+s+`"}`, `{"`+s+`":1}`, `{"a":["`+s+`","`+s+`"],"b":{"`+s+`":"`+s+`","`+s+`":2}}`)
	}
	for _, depth := range []int{10, maxDepth - 2, maxDepth - 1, maxDepth, maxDepth + 1} {
		texts = append(texts, `{"a":`+strings.Repeat("[", depth)+strings.Repeat("]", depth)+`}`, strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth))
	}
	var many, fields []string
	for i := range 40 {
		many = append(many, fmt.Sprintf(`{"name":"n%d","value":%d}`, i, i))
		fields = append(fields, fmt.Sprintf(`"f%d":"v%d"`, i, i))
	}
	return append(texts, `{"items":[`+strings.Join(many, ",")+`],"data":{`+strings.Join(fields, ",")+`}}`,
		`{"kind":"Secret","data":{"a":"b"}}`, `{"data":{"a":"b"},"kind":"SecretList"}`, `{"kind":"Sec\u0072et","data":{"a":"b"}}`)
}

const aWidget = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","uid":"0-1","generation":3,"labels":{"app":"web","tier":"front"},` +
	`"managedFields":[{"manager":"helm","fieldsV1":{"f:spec":{"k:{\"name\":\"a\"}":{".":{},"f:x":{}}}}}]},"spec":{"a":{"b":[{"c":1,"d":"e"},{"c":1,"d":"f"}]},"n":1.5,"t":true,"z":null}}`

func dropped(t testing.TB, paths ...string) fieldpath.Tree {
	tree, err := fieldpath.Parse(paths)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestMapsAreThoseOfTheMachinery decodes texts in which decoders differ.
func TestMapsAreThoseOfTheMachinery(t *testing.T) {
	drop := dropped(t, "a.b", "metadata.managedFields", "c", "spec.a.b.c")
	for _, text := range jsonTexts() {
		compareMaps(t, []byte(aWidget), []byte(text), nil)
		compareMaps(t, []byte(aWidget), []byte(text), drop)
	}
}

// TestDeepMaps decodes objects that are too deep to be decoded here, and some that are too
// deep for the API machinery, too.
func TestDeepMaps(t *testing.T) {
	d := NewMapDecoder(new(Table), widgets, ShareAll, dropped(t, "a.b"))
	for _, depth := range []int{9999, 10000, 10001} {
		sameMap(t, d, []byte(`{"a":`+strings.Repeat("[", depth-1)+strings.Repeat("]", depth-1)+`}`))
		sameMap(t, d, []byte(strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)))
	}
	if s := d.Stats(); s != (DecoderStats{Generated: 4, Rejected: 2}) {
		t.Errorf("%+v", s)
	}
}

// FuzzMaps compares with the API machinery's decoder.
func FuzzMaps(f *testing.F) {
	for _, text := range append(jsonTexts(), aWidget) {
		if len(text) < 2000 {
			f.Add([]byte(text), false)
			f.Add([]byte(text), true)
		}
	}
	drop := dropped(f, "a.b", "metadata.managedFields", "c", "spec.a.b.c")
	f.Fuzz(func(t *testing.T, data []byte, dropping bool) {
		tree := drop
		if !dropping {
			tree = nil
		}
		compareMaps(t, []byte(aWidget), data, tree)
	})
}
