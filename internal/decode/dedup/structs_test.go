package dedup

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
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
	deduptest.Overwrite(tb, frame, data)
	if gotErr == ErrQuantity || len(d.cut.drop) > 0 && takesHours(t, data) {
		return nil // the API machinery would take hours, also for a field that d leaves out
	}
	wantErr := utiljson.Unmarshal(data, want)
	fieldpath.NewClearer(d.cut.drop, t).Clear(want)
	if len(d.cut.drop) > 0 && wantErr != nil && gotErr == nil {
		return nil // the values of fields that are left out are not checked
	}
	if !deduptest.Same(tb, data, want, got, wantErr, gotErr) {
		return nil
	}
	if shared {
		deduptest.Exact(tb, reflect.ValueOf(got))
	}
	return got
}

// takesHours reports whether the API machinery would take hours to decode data.
func takesHours(t reflect.Type, data []byte) bool {
	_, err := newStructDecoder(new(Table), t, ShareStrings).Unmarshal(data, reflect.New(t).Interface())
	return err == ErrQuantity
}

// TestEveryStruct decodes random objects of every type of client-go's scheme, each several times
// so that it is shared, and compares them with the API machinery's. Decoders that leave out random
// fields share the table.
func TestEveryStruct(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := deduptest.New(seed)
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
				if d := structWithout(f, t, whole); d != nil {
					decoders = append(decoders, d)
					dropped++
				}
			}
			var objects [][]byte
			for range 2 {
				objects = append(objects, f.JSON(t, typ, 4))
			}
			var kept []any
			var had writers
			for range 3 {
				for _, data := range objects {
					for _, d := range decoders {
						got := sameStruct(t, d, data)
						had.add(t, got)
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
func structWithout(f *deduptest.Filler, t *testing.T, d *StructDecoder) *StructDecoder {
	paths := dropPaths(f, d.typ)
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
	f := deduptest.New(seed)
	table := new(Table)
	var shared, fallen, rejected int64
	for _, typ := range everyStruct(t) {
		whole := newStructDecoder(table, typ, ShareAll)
		for _, d := range []*StructDecoder{whole, cmp.Or(structWithout(f, t, whole), whole)} {
			data := f.JSON(t, typ, 4)
			sameStruct(t, d, data)
			for range 6 {
				odd := f.Odd(data)
				if f.Random.IntN(4) == 0 {
					odd = f.Damage(odd)
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

// FuzzEveryStruct decodes as any type of client-go's scheme, or as everyKind: the number says
// which.
func FuzzEveryStruct(f *testing.F) {
	types := append(everyStruct(f), reflect.TypeFor[everyKind]())
	filler := deduptest.New(3)
	before := make([][]byte, len(types))
	plans := make([]*plan, len(types))
	for i, typ := range types {
		plans[i] = planOf(f, typ, inJSON)
	}
	for i, typ := range types[:len(types)-1] {
		before[i] = filler.Seed(f, typ)
		f.Add(uint16(i), filler.Odd(before[i]))
	}
	odd := oddFields()
	before[len(types)-1] = []byte(manyKinds)
	for range 100 {
		f.Add(uint16(len(types)-1), []byte(odd[filler.Random.IntN(len(odd))]))
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		i := int(number) % len(types)
		for _, sharing := range []Sharing{ShareAll, ShareStrings} {
			d := newStructDecoder(tableOf(plans[i], types[i], inJSON), types[i], sharing)
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
