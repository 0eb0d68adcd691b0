package dedup

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// encodable is implemented by every API type.
type encodable interface {
	Message
	Marshal() ([]byte, error)
}

// everyType returns the Go types of client-go's scheme that have a protobuf encoding.
func everyType(tb testing.TB) []reflect.Type {
	seen := map[reflect.Type]bool{}
	for _, t := range scheme.Scheme.AllKnownTypes() {
		if reflect.PointerTo(t).Implements(reflect.TypeFor[encodable]()) {
			seen[t] = true
		}
	}
	if len(seen) < 300 {
		tb.Fatalf("the scheme has %d types with a protobuf encoding, several hundred were expected", len(seen))
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

func newObject(t reflect.Type) encodable { return reflect.New(t).Interface().(encodable) }

// randomObject returns a random object, encoded, with values inside each other at
// most depth deep.
func randomObject(tb testing.TB, f *deduptest.Filler, t reflect.Type, depth int) []byte {
	tb.Helper()
	v := reflect.New(t)
	f.Fill(v.Elem(), depth)
	data, err := v.Interface().(encodable).Marshal()
	if err != nil {
		tb.Fatalf("encode a random %v: %v", t, err)
	}
	return data
}

// idle returns the idle workers of the decoder.
func idle(d *Decoder) []*protoWorker {
	if d.Shares() != nil {
		return nil
	}
	return d.plan.decoders.workers[d.sharing]
}

// keenStats are those of a field whose values are all tried, and kept when they are new.
var keenStats = fieldStats{balance: mostBalance, earlyBalance: mostEarlyBalance}

// keen makes every worker of the decoder try to share everything and keep all that is new.
func keen(d *Decoder) {
	for _, w := range idle(d) {
		for i := range w.stats {
			w.stats[i] = keenStats
		}
	}
}

// same decodes data with d and with the generated code and compares verdicts and
// values. It returns the object.
func same(tb testing.TB, d *Decoder, data []byte) encodable {
	tb.Helper()
	t := d.typ.Elem()
	want, got := newObject(t), newObject(t)
	frame := slices.Clone(data)
	left := d.Stats().Generated
	gotErr := d.Unmarshal(frame, got)
	deduptest.Overwrite(tb, frame, data)
	if gotErr == ErrQuantity || len(d.cut.drop) > 0 &&
		NewDecoder(new(Table), newObject(t), ShareNothing).Unmarshal(data, newObject(t)) == ErrQuantity {
		return nil // the generated code would take hours, also for a field that d leaves out
	}
	wantErr := want.Unmarshal(data)
	fieldpath.NewClearer(d.cut.drop, t).Clear(want)
	if len(d.cut.drop) > 0 && wantErr != nil && gotErr == nil {
		return nil // the bytes of fields that are left out are not checked
	}
	if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
		tb.Fatalf("%v from %x:\ngenerated code: %v\nthis decoder:   %v", t, data, wantErr, gotErr)
	}
	if wantErr != nil {
		return nil
	}
	if !reflect.DeepEqual(want, got) {
		tb.Fatalf("%v from %x:\ngenerated code: %+v\nthis decoder:   %+v", t, data, want, got)
	}
	wantBytes, wantErr := want.Marshal()
	gotBytes, gotErr := got.Marshal()
	if (wantErr == nil) != (gotErr == nil) || !bytes.Equal(wantBytes, gotBytes) {
		tb.Fatalf("%v from %x encoded again:\ngenerated code: %x, %v\nthis decoder:   %x, %v", t, data, wantBytes, wantErr, gotBytes, gotErr)
	}
	if d.Stats().Generated == left {
		deduptest.Exact(tb, reflect.ValueOf(got))
	}
	return got
}

// TestEveryType decodes random objects of every type of client-go's scheme, each several times so
// that it is shared, and compares them with those that the generated code makes of the same bytes.
// Decoders that leave out random fields share the table.
func TestEveryType(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := deduptest.New(seed)
	table := new(Table)
	dropped := 0
	for _, typ := range everyType(t) {
		t.Run(typ.String(), func(t *testing.T) {
			whole := NewDecoder(table, newObject(typ), ShareAll)
			if (whole.Shares() != nil) != secret(typ) {
				t.Fatalf("not decoded here: %v", whole.Shares())
			}
			decoders := []*Decoder{whole}
			for range 3 {
				if d := without(f, t, whole); d != nil {
					decoders = append(decoders, d)
					dropped++
				}
			}
			var objects [][]byte
			for range 4 {
				objects = append(objects, randomObject(t, f, typ, 6))
			}
			for range 3 {
				for _, data := range objects {
					for _, d := range decoders {
						same(t, d, data)
						keen(d)
					}
				}
			}
			for _, d := range decoders {
				if s := d.Stats(); !secret(typ) && s.Generated+s.Rejected != 0 {
					t.Errorf("%+v: all objects of this type should be decoded here", s)
				}
			}
		})
	}
	if dropped < 600 {
		t.Errorf("fields were left out %d times; the test proves little", dropped)
	}
	stats := table.Stats()
	if stats.Hits < stats.Misses/2 || stats.Values == 0 || stats.Strings == 0 {
		t.Errorf("little was shared: %+v", stats)
	}
}

func secret(t reflect.Type) bool { return t.Name() == "Secret" || t.Name() == "SecretList" }

// TestDamagedObjects changes, cuts and repeats bytes of random objects of every type: the verdict
// must be the generated code's, and so must the value if there is one.
func TestDamagedObjects(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := deduptest.New(seed)
	table := new(Table)
	fallen, rejected := int64(0), int64(0)
	for _, typ := range everyType(t) {
		whole := NewDecoder(table, newObject(typ), ShareAll)
		for _, d := range []*Decoder{whole, cmp.Or(without(f, t, whole), whole)} {
			for range 3 {
				data := randomObject(t, f, typ, 6)
				for range 10 {
					same(t, d, f.Damage(data))
					keen(d)
				}
			}
			fallen, rejected = fallen+d.Stats().Generated, rejected+d.Stats().Rejected
		}
	}
	if fallen == 0 || rejected == 0 {
		t.Errorf("%d objects were left to the generated code and %d rejected; the damage does not show", fallen, rejected)
	}
}
