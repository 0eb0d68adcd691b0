package dedup

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/fieldpath"
)

// dropPath returns the path of a random field of a type, "" if it has none that can be
// left out. It knows the types by their tags and by hand, not through what is tested.
func (f *filler) dropPath(t reflect.Type, before string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return ""
	}
	sf := t.Field(f.random.IntN(t.NumField()))
	name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if sf.Tag.Get("protobuf") == "" || sf.Tag.Get("protobuf") == "-" {
		return ""
	}
	if sf.Anonymous && name == "" {
		return f.dropPath(sf.Type, before)
	}
	path := before + name
	if f.random.IntN(3) > 0 {
		if deeper := f.dropPath(sf.Type, path+"."); deeper != "" {
			return deeper
		}
	}
	return path
}

// dropPaths returns some paths that can be left out of a type.
func (f *filler) dropPaths(t reflect.Type) []string {
	var paths []string
	for range 50 {
		path := f.dropPath(t, "")
		if _, err := fieldpath.Parse([]string{path}); err == nil {
			paths = append(paths, path)
		}
		if len(paths) == 6 {
			break
		}
	}
	return paths
}

// without decodes data with the generated code and then clears the fields: as it would be
// had they never been set.
func without(tb testing.TB, t reflect.Type, data []byte, paths []string) encodable {
	tb.Helper()
	obj := newObject(t)
	if err := obj.Unmarshal(data); err != nil {
		tb.Fatal(err)
	}
	tree, err := fieldpath.Parse(paths)
	if err != nil {
		tb.Fatal(err)
	}
	fieldpath.NewClearer(tree, t).Clear(obj)
	return obj
}

// TestWithoutEveryType leaves random fields out of random objects of every type of
// client-go's scheme, beside decoders that leave out nothing, or other fields: each
// object must be what the generated code makes of it, but for its own decoder's fields.
func TestWithoutEveryType(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFiller(seed)
	table := new(Table)
	dropped := 0
	for _, typ := range everyType(t) {
		whole := NewDecoder(table, newObject(typ), ShareAll)
		decoders := map[*Decoder][]string{whole: nil}
		for range 3 {
			if paths := f.dropPaths(typ); len(paths) > 0 {
				d, err := whole.Without(paths...)
				if err != nil {
					t.Fatalf("%v without %q: %v", typ, paths, err)
				}
				decoders[d] = paths
			}
		}
		dropped += len(decoders) - 1
		var objects [][]byte
		for range 4 {
			objects = append(objects, randomObject(t, f, typ, 6))
		}
		for range 3 {
			for _, data := range objects {
				for d, paths := range decoders {
					want, got := without(t, typ, data, paths), newObject(typ)
					if err := d.Unmarshal(slices.Clone(data), got); err != nil {
						t.Fatalf("%v without %q: %v", typ, paths, err)
					}
					if !reflect.DeepEqual(want, got) {
						t.Fatalf("%v without %q from %x:\nwant %+v\ngot  %+v", typ, paths, data, want, got)
					}
					keen(d)
				}
			}
		}
		for d, paths := range decoders {
			if s := d.Stats(); d.Shares() == nil && s.Generated != 0 {
				t.Errorf("%v without %q: %+v, all objects should be decoded here", typ, paths, s)
			}
		}
	}
	if dropped < 600 {
		t.Errorf("fields were left out %d times; the test proves little", dropped)
	}
}

// TestWithoutDamaged decodes damaged objects: one that the generated code accepts is
// accepted, and is without the fields.
func TestWithoutDamaged(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	f := newFiller(seed)
	table := new(Table)
	var total DecoderStats
	lenient := 0
	for _, typ := range everyType(t) {
		paths := f.dropPaths(typ)
		d, err := NewDecoder(table, newObject(typ), ShareAll).Without(paths...)
		if err != nil {
			t.Fatal(err)
		}
		for range 30 {
			data := f.damage(randomObject(t, f, typ, 6))
			got := newObject(typ)
			err := d.Unmarshal(data, got)
			keen(d)
			if newObject(typ).Unmarshal(data) != nil {
				if err == nil {
					lenient++
				}
				continue
			}
			if want := without(t, typ, data, paths); err != nil || !reflect.DeepEqual(want, got) {
				t.Fatalf("%v without %q from %x: %v\nwant %+v\ngot  %+v", typ, paths, data, err, want, got)
			}
		}
		s := d.Stats()
		total.Shared, total.Generated, total.Rejected = total.Shared+s.Shared, total.Generated+s.Generated, total.Rejected+s.Rejected
	}
	t.Logf("%+v, of which %d would be rejected for what was left out", total, lenient)
	if total.Shared == 0 || total.Generated == 0 || total.Rejected == 0 {
		t.Errorf("%+v: the damage does not show", total)
	}
}

// TestWithoutIsNotShared has two decoders of one table decode the same bytes, one of them
// without a field that is deep in what they would share.
func TestWithoutIsNotShared(t *testing.T) {
	table := new(Table)
	whole := NewDecoder(table, &corev1.Pod{}, ShareAll)
	noEnv, err := whole.Without("spec.containers.env", "metadata.managedFields")
	if err != nil {
		t.Fatal(err)
	}
	c := newCorpus(1, 3)
	data := encode(c.pod(c.workload(1)))
	var pods, less []*corev1.Pod
	for range 6 {
		pod, without := &corev1.Pod{}, &corev1.Pod{}
		for d, into := range map[*Decoder]*corev1.Pod{whole: pod, noEnv: without} {
			if err := d.Unmarshal(data, into); err != nil {
				t.Fatal(err)
			}
			keen(d)
		}
		pods, less = append(pods, pod), append(less, without)
	}
	for i := range pods {
		if len(pods[i].Spec.Containers[0].Env) == 0 || len(pods[i].ManagedFields) == 0 {
			t.Fatal("the whole pod lacks what another decoder leaves out")
		}
		if less[i].Spec.Containers[0].Env != nil || less[i].ManagedFields != nil {
			t.Fatal("the pod has what its decoder leaves out")
		}
	}
	if &less[4].Spec.Containers[0] != &less[5].Spec.Containers[0] {
		t.Error("pods without a field share nothing with each other")
	}
	if less[5].Spec.Containers[0].Image == "" || &pods[5].Spec.Volumes[0] != &less[5].Spec.Volumes[0] {
		t.Error("a part from which nothing is left out is not shared with whole pods")
	}
}

// TestWithoutFallsBack decodes what the generated code has to decode.
func TestWithoutFallsBack(t *testing.T) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Data: map[string][]byte{"key": []byte("x")}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "n", HostIPC: true}}
	tests := map[string]struct {
		example Message
		sharing Sharing
		data    []byte
		path    string
	}{
		"secret":        {&corev1.Secret{}, ShareAll, encode(secret), "data"},
		"no sharing":    {&corev1.Pod{}, ShareNothing, encode(pod), "spec"},
		"falling order": {&corev1.Pod{}, ShareAll, append(lengthy(2, encode(&pod.Spec)...), lengthy(1, encode(&pod.ObjectMeta)...)...), "spec.nodeName"},
		"twice apart":   {&corev1.Pod{}, ShareAll, append(encode(pod), encode(pod)...), "spec"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			d, err := NewDecoder(new(Table), test.example, test.sharing).Without(test.path)
			if err != nil {
				t.Fatal(err)
			}
			typ := reflect.TypeOf(test.example).Elem()
			got := newObject(typ)
			if err := d.Unmarshal(test.data, got); err != nil {
				t.Fatal(err)
			}
			want := without(t, typ, test.data, []string{test.path})
			if d.Stats().Generated != 1 || !reflect.DeepEqual(got, want) || reflect.DeepEqual(want, newObject(typ)) {
				t.Errorf("%+v: got %+v, want %+v", d.Stats(), got, want)
			}
		})
	}
}

func TestWithoutRefuses(t *testing.T) {
	d := NewDecoder(new(Table), &corev1.Pod{}, ShareAll)
	for path, says := range map[string]string{
		"spec.container.env":              `"containers"`,
		"metadata.labels.app":             "map[string]string",
		"metadata.creationTimestamp.Time": "one value",
		"metadata.uid":                    "told apart",
		"":                                "not a path",
	} {
		says = strings.Trim(says, `"`)
		if _, err := d.Without(path); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, should say %q", path, err, says)
		}
	}
}
