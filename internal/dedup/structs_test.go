package dedup

import (
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/fieldpath"
	"github.com/tidings-go/tidings/internal/wire"
)

// everyStruct returns all Go types of client-go's scheme.
func everyStruct(tb testing.TB) []reflect.Type {
	seen := map[reflect.Type]bool{}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		seen[t] = true
	}
	if len(seen) < 300 {
		tb.Fatalf("the scheme has %d types, several hundred were expected", len(seen))
	}
	types := make([]reflect.Type, 0, len(seen))
	for t := range seen {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b reflect.Type) int {
		return cmp.Or(cmp.Compare(a.PkgPath(), b.PkgPath()), cmp.Compare(a.Name(), b.Name()))
	})
	return types
}

func newStructDecoder(table *Table, t reflect.Type, sharing Sharing) *StructDecoder {
	return NewStructDecoder(table, schema.GroupVersionKind{}, reflect.New(t).Interface(), sharing)
}

// keenStructs makes every worker of the decoder try to share everything and keep all that is new.
func keenStructs(d *StructDecoder) {
	if d.Shares() != nil {
		return
	}
	for _, w := range d.plan.structs.workers[d.sharing] {
		for i := range w.stats {
			w.stats[i] = keenStats
		}
		for i := range w.paths.nodes {
			n := &w.paths.nodes[i]
			n.strings, n.nested = keenStats, keenStats
		}
	}
}

// sameStruct decodes data with d and with the API machinery and compares verdicts and values. It
// returns the object, nil if it was rejected.
func sameStruct(tb testing.TB, d *StructDecoder, data []byte) any {
	tb.Helper()
	t := d.typ.Elem()
	want, got := reflect.New(t).Interface(), reflect.New(t).Interface()
	frame := slices.Clone(data)
	shared, gotErr := d.Unmarshal(frame, got)
	if string(frame) != string(data) {
		tb.Fatalf("%v: %q was changed into %q", t, data, frame)
	}
	for i := range frame {
		frame[i] ^= 0xa5 // nothing may point into the frame
	}
	if gotErr == ErrQuantity {
		return nil // the API machinery would take hours
	}
	wantErr := utiljson.Unmarshal(data, want)
	fieldpath.NewClearer(d.drop, t).Clear(want)
	if len(d.drop) > 0 && wantErr != nil && gotErr == nil {
		return nil // the values of fields that are left out are not checked
	}
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		tb.Fatalf("%v from %s:\nAPI machinery: %v\nthis decoder:  %v", t, data, wantErr, gotErr)
	}
	if wantErr != nil {
		return nil
	}
	if !reflect.DeepEqual(want, got) {
		tb.Fatalf("%v from %s:\nAPI machinery: %+v\nthis decoder:  %+v", t, data, want, got)
	}
	if shared {
		exact(tb, reflect.ValueOf(got))
	}
	return got
}

// jsonObject returns a random object in JSON, with values inside each other at most depth deep.
func (f *filler) jsonObject(tb testing.TB, t reflect.Type, depth int) []byte {
	tb.Helper()
	f.json = true
	v := reflect.New(t)
	f.fill(v.Elem(), depth)
	data, err := json.Marshal(v.Interface())
	if err != nil {
		tb.Fatalf("encode a random %v: %v", t, err)
	}
	return data
}

// TestEveryStruct decodes random objects of every type of client-go's scheme, each several times
// so that it is shared, and compares them with the API machinery's. Decoders that leave out random
// fields share the table.
func TestEveryStruct(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFiller(seed)
	table := new(Table)
	dropped := 0
	for _, typ := range everyStruct(t) {
		t.Run(typ.String(), func(t *testing.T) {
			whole := newStructDecoder(table, typ, ShareAll)
			if (whole.Shares() != nil) != secret(typ) {
				t.Fatalf("not decoded here: %v", whole.Shares())
			}
			decoders := []*StructDecoder{whole, newStructDecoder(table, typ, ShareStrings)}
			for range 2 {
				if d := f.structWithout(t, whole); d != nil {
					decoders = append(decoders, d)
					dropped++
				}
			}
			var objects [][]byte
			for range 2 {
				objects = append(objects, f.jsonObject(t, typ, 4))
			}
			var kept []any
			for range 3 {
				for _, data := range objects {
					for _, d := range decoders {
						got := sameStruct(t, d, data)
						if d == whole {
							kept = append(kept, got)
						}
						keenStructs(d)
					}
				}
			}
			for i, got := range kept {
				want := reflect.New(typ).Interface()
				if err := utiljson.Unmarshal(objects[i%len(objects)], want); err != nil {
					t.Fatal(err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatal("decoding others has changed an object")
				}
			}
			for _, d := range decoders {
				if typ == reflect.TypeFor[metav1.InternalEvent]() {
					continue // with an interface that JSON cannot be decoded into
				}
				if s := d.Stats(); !secret(typ) && s.Generated+s.Rejected != 0 {
					t.Errorf("%+v: all objects of this type should be decoded here", s)
				}
			}
		})
	}
	if dropped < 400 {
		t.Errorf("fields were left out %d times; the test proves little", dropped)
	}
	if s := table.Stats(); s.Hits < s.Misses/2 || s.Values == 0 || s.Strings == 0 {
		t.Errorf("little was shared: %+v", s)
	}
}

// structWithout returns a decoder that leaves out some random fields, or nil.
func (f *filler) structWithout(t *testing.T, d *StructDecoder) *StructDecoder {
	paths := f.dropPaths(d.typ)
	if len(paths) == 0 {
		return nil
	}
	less, err := d.Without(paths...)
	if err != nil {
		t.Fatalf("%v without %q: %v", d.typ, paths, err)
	}
	return less
}

// TestOddStructs changes random objects of every type in the ways in which decoders of JSON
// differ: the verdict must be the API machinery's, and so must the value if there is one.
func TestOddStructs(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFiller(seed)
	table := new(Table)
	var shared, fallen, rejected int64
	for _, typ := range everyStruct(t) {
		whole := newStructDecoder(table, typ, ShareAll)
		for _, d := range []*StructDecoder{whole, cmp.Or(f.structWithout(t, whole), whole)} {
			data := f.jsonObject(t, typ, 4)
			sameStruct(t, d, data)
			for range 6 {
				odd := f.odd(data)
				if f.random.IntN(4) == 0 {
					odd = f.damage(odd)
				}
				sameStruct(t, d, odd)
				keenStructs(d)
			}
			sameStruct(t, d, data)
			s := d.Stats()
			shared, fallen, rejected = shared+s.Shared, fallen+s.Generated, rejected+s.Rejected
		}
	}
	if shared == 0 || fallen == 0 || rejected == 0 {
		t.Errorf("%d objects were decoded here, %d left to the API machinery and %d rejected", shared, fallen, rejected)
	}
}

// oddValues are values that stand in the place of others.
var oddValues = []string{
	"null", "true", "false", "0", "-0", "1", "-1", "1.0", "1e3", "1E-2", "127", "128", "255", "256", "-129", "32768", "2147483647", "2147483648", "-2147483649",
	"9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616", "1e99", "1e400", "0.1", "01", "-", "1.", "nul", "NaN", "{}", "[]", "[null]", "[[]]", "[{}]", `{"":null}`, `{"a":1,"a":{}}`,
	`""`, `"a"`, `"1"`, `"true"`, `"null"`, `"1Gi"`, `" 1 "`, `"1e3"`, `"0.5n"`, `"1e-100000"`, `"YQ=="`, `"YQ"`, `"YW\nI="`, `"2026-01-02T03:04:05Z"`, `"2026-01-02T03:04:05.123456Z"`, `"2026-01-02T03:04:05+02:00"`, `"2026-13-02T03:04:05Z"`, `"5m"`,
	`"\u0061"`, `"\u00e9\n"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\x"`, "\"\xff\"", "\"\t\"", `"é"`, `[1,2,3]`, `["a",null,"a"]`, `{"name":"a","name":"b"}`, `{"matchLabels":{"a":"b","a":"c"}}`,
}

// odd returns a JSON text with one to three changes.
func (f *filler) odd(data []byte) []byte {
	for range 1 + f.random.IntN(3) {
		var z wire.Tokens
		if !z.Read(data) || len(z.All) < 2 {
			return data
		}
		t := &z.All[1+f.random.IntN(len(z.All)-1)]
		begin, end := int(t.Begin), int(t.End)
		switch {
		case f.random.IntN(12) == 0:
			data = f.oddWhole(data)
		case t.IsText() && end < len(data)-2 && data[end+1] == ':':
			data = f.oddName(data, begin, end, &z.All[t.Next])
		default:
			if t.IsText() {
				begin, end = begin-1, end+1
			}
			value := oddValues[f.random.IntN(len(oddValues))]
			if f.random.IntN(4) == 0 {
				other := &z.All[1+f.random.IntN(len(z.All)-1)]
				if !other.IsText() {
					value = string(data[other.Begin:other.End])
				}
			}
			data = slices.Concat(data[:begin], []byte(value), data[end:])
		}
	}
	return data
}

// oddName changes the name of a field, which is at data[begin:end], or repeats its field.
func (f *filler) oddName(data []byte, begin, end int, value *wire.Token) []byte {
	name := string(data[begin:end])
	switch f.random.IntN(6) {
	case 0:
		name = strings.ToUpper(name)
	case 1:
		name = "unknown"
	case 2:
		name = strings.Replace(name, "a", `\u0061`, 1)
	case 3:
		name += "\xff"
	case 4: // twice, with another value first or last
		name += `":` + oddValues[f.random.IntN(len(oddValues))] + `,"` + name
	default: // twice with the same value
		last := int(value.End)
		if value.IsText() {
			last++
		}
		return slices.Concat(data[:begin-1], data[begin-1:last], []byte(","), data[begin-1:])
	}
	return slices.Concat(data[:begin], []byte(name), data[end:])
}

// oddWhole changes what is around an object, and all of it.
func (f *filler) oddWhole(data []byte) []byte {
	switch f.random.IntN(6) {
	case 0:
		return append(slices.Clone(data), " \n"...)
	case 1:
		return append(slices.Clone(data), "{}"...)
	case 2:
		return slices.Concat([]byte(" \t"), data)
	case 3:
		deep := []int{50, 98, 99, 100, 101, 9990}[f.random.IntN(6)]
		return slices.Concat([]byte(`{"unknown":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+","), data[1:])
	case 4:
		return slices.Concat([]byte(`{"kind":"Secret",`), data[1:])
	default:
		return []byte(strings.ReplaceAll(string(data), `,`, " ,\n "))
	}
}

// FuzzEveryStruct decodes as any type of client-go's scheme: the number says which.
func FuzzEveryStruct(f *testing.F) {
	types := everyStruct(f)
	filler := newFiller(3)
	before := make([][]byte, len(types))
	for i, typ := range types {
		before[i] = filler.jsonObject(f, typ, 3)
		f.Add(uint16(i), filler.odd(before[i]))
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		i := int(number) % len(types)
		for _, sharing := range []Sharing{ShareAll, ShareStrings} {
			d := newStructDecoder(new(Table), types[i], sharing)
			for range 2 {
				sameStruct(t, d, before[i])
				keenStructs(d)
			}
			first := sameStruct(t, d, data)
			keenStructs(d)
			sameStruct(t, d, data)
			sameStruct(t, d, before[i])
			if again := sameStruct(t, d, data); !reflect.DeepEqual(first, again) {
				t.Fatalf("decoding others changed what was decoded before: %+v, was %+v", first, again)
			}
		}
	})
}
