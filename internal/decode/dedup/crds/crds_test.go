package crds

import (
	"cmp"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	acmev1 "github.com/cert-manager/cert-manager/pkg/apis/acme/v1"
	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	addonsv1 "sigs.k8s.io/cluster-api/api/addons/v1beta2"
	bootstrapv1 "sigs.k8s.io/cluster-api/api/bootstrap/kubeadm/v1beta2"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ipamv1 "sigs.k8s.io/cluster-api/api/ipam/v1beta2"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/tidings-go/tidings/internal/decode/dedup"
	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
)

// everyType returns the Go types of the schemes.
func everyType(tb testing.TB) []reflect.Type {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		apiextensionsv1.AddToScheme, gatewayv1.Install, gatewayv1beta1.Install,
		certmanagerv1.AddToScheme, acmev1.AddToScheme, clusterv1.AddToScheme, addonsv1.AddToScheme,
		bootstrapv1.AddToScheme, controlplanev1.AddToScheme, ipamv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	seen := map[reflect.Type]bool{}
	for _, t := range s.AllKnownTypes() {
		seen[t] = true
	}
	delete(seen, reflect.TypeFor[metav1.InternalEvent]()) // it has an interface
	var types []reflect.Type
	for t := range seen {
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b reflect.Type) int {
		return cmp.Or(cmp.Compare(a.PkgPath(), b.PkgPath()), cmp.Compare(a.Name(), b.Name()))
	})
	return types
}

// newFiller returns a filler that knows the tokens of kubeadm: the type refuses all others.
func newFiller(seed uint64) *deduptest.Filler {
	f := deduptest.New(seed)
	f.Custom = func(v reflect.Value) bool {
		token, ok := v.Addr().Interface().(*bootstrapv1.BootstrapTokenString)
		if ok {
			token.ID, token.Secret = "abcdef", "0123456789abcdef"
		}
		return ok
	}
	return f
}

// same decodes data with d and with the API machinery and compares them. It returns the object,
// nil if it was rejected.
func same(tb testing.TB, d *dedup.StructDecoder, t reflect.Type, data []byte) any {
	tb.Helper()
	want, got := reflect.New(t).Interface(), reflect.New(t).Interface()
	frame := slices.Clone(data)
	shared, gotErr := d.Unmarshal(frame, got)
	deduptest.Overwrite(tb, frame, data)
	if gotErr == dedup.ErrQuantity {
		return nil // the API machinery would take hours
	}
	wantErr := utiljson.Unmarshal(data, want)
	if !deduptest.Same(tb, data, want, got, wantErr, gotErr) {
		return nil
	}
	if shared {
		deduptest.Exact(tb, reflect.ValueOf(got))
	}
	return got
}

func newDecoder(table *dedup.Table, t reflect.Type) *dedup.StructDecoder {
	example := reflect.New(t).Interface()
	return dedup.NewStructDecoder(table, schema.GroupVersionKind{}, example, dedup.ShareAll)
}

// TestEveryType decodes random objects of every type, each several times so that it is shared, and
// changed in the ways in which decoders of JSON differ.
func TestEveryType(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFiller(seed)
	table := new(dedup.Table)
	types := everyType(t)
	if len(types) < 80 {
		t.Fatalf("there are %d types, more were expected", len(types))
	}
	for _, typ := range types {
		t.Run(typ.String(), func(t *testing.T) {
			d := newDecoder(table, typ)
			if err := d.Shares(); err != nil {
				t.Fatalf("not decoded here: %v", err)
			}
			for range 5 {
				s := d.Stats()
				before := s.Generated + s.Rejected
				data := f.JSON(t, typ, 4)
				for range 3 {
					same(t, d, typ, data)
				}
				if s := d.Stats(); s.Generated+s.Rejected != before {
					t.Fatalf("%+v: all objects of this type should be decoded here", s)
				}
				for range 6 {
					odd := f.Odd(data)
					if f.Random.IntN(4) == 0 {
						odd = f.Damage(odd)
					}
					same(t, d, typ, odd)
				}
			}
		})
	}
	if s := table.Stats(); s.Values == 0 || s.Strings == 0 {
		t.Errorf("little was shared: %+v", s)
	}
}

// TestV1_Views decodes random objects of every type as random views.
func TestV1_Views(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f, views := newFiller(seed), deduptest.Views{Rand: rand.New(rand.NewPCG(seed, 1))}
	table := new(dedup.Table)
	compared := 0
	for _, typ := range everyType(t) {
		t.Run(typ.String(), func(t *testing.T) {
			for range 10 {
				if view := views.View(typ); view != nil && sameView(t, table, view, typ, f.JSON(t, typ, 4)) {
					compared++
				}
			}
		})
	}
	if compared < 500 {
		t.Errorf("%d views were compared: little is proved", compared)
	}
}

// sameView decodes data as a view and as the whole object, and compares their fields. It reports
// whether there is a whole object.
func sameView(tb testing.TB, table *dedup.Table, view any, typ reflect.Type, data []byte) bool {
	tb.Helper()
	whole, got := reflect.New(typ), reflect.New(reflect.TypeOf(view).Elem())
	if utiljson.Unmarshal(data, whole.Interface()) != nil {
		return false
	}
	kind := whole.Interface().(runtime.Object).GetObjectKind().GroupVersionKind()
	d, err := dedup.NewStructDecoder(table, kind, whole.Interface(), dedup.ShareAll).View(view)
	if err != nil {
		tb.Fatal(err)
	}
	for range 3 {
		got.Elem().SetZero()
		if _, err := d.Unmarshal(data, got.Interface()); err != nil {
			tb.Fatalf("%v as %v from %s: %v", typ, got.Type(), data, err)
		}
		if path := deduptest.Differs(got.Elem(), whole.Elem(), ""); path != "" {
			tb.Fatalf("%v as %v from %s: %s is not the same", typ, got.Type(), data, path)
		}
	}
	return true
}

// FuzzEveryType decodes as any of the types: the number says which.
func FuzzEveryType(f *testing.F) {
	types := everyType(f)
	filler := newFiller(3)
	before := make([][]byte, len(types))
	for i, typ := range types {
		before[i] = filler.Seed(f, typ)
		f.Add(uint16(i), filler.Odd(before[i]))
	}
	f.Fuzz(func(t *testing.T, number uint16, data []byte) {
		i := int(number) % len(types)
		d := newDecoder(new(dedup.Table), types[i])
		first := same(t, d, types[i], before[i])
		for _, text := range [][]byte{before[i], data, data, before[i], data} {
			same(t, d, types[i], text)
		}
		if last := same(t, d, types[i], before[i]); !reflect.DeepEqual(first, last) {
			t.Fatalf("decoding others changed what was decoded before: %+v, was %+v", first, last)
		}
	})
}
