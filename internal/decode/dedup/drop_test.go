package dedup

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/internal/decode/dedup/deduptest"
	"github.com/tidings-go/tidings/internal/decode/fieldpath"
)

// dropPath returns the path of a random field of a type, "" if it has none that can be
// left out. It knows the types by their tags and by hand, not through the tested code.
func dropPath(f *deduptest.Filler, t reflect.Type, before string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || t.NumField() == 0 || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return ""
	}
	sf := t.Field(f.Random.IntN(t.NumField()))
	name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
	if sf.Tag.Get("protobuf") == "" || sf.Tag.Get("protobuf") == "-" {
		return ""
	}
	if sf.Anonymous && name == "" {
		return dropPath(f, sf.Type, before)
	}
	path := before + name
	if f.Random.IntN(3) > 0 {
		if deeper := dropPath(f, sf.Type, path+"."); deeper != "" {
			return deeper
		}
	}
	return path
}

// dropPaths returns up to six random paths of a type.
func dropPaths(f *deduptest.Filler, t reflect.Type) (paths []string) {
	for range 50 {
		path := dropPath(f, t, "")
		if _, err := fieldpath.Parse([]string{path}); err == nil && len(paths) < 6 {
			paths = append(paths, path)
		}
	}
	return paths
}

// without returns a decoder that leaves out some random fields, or nil.
func without(f *deduptest.Filler, t *testing.T, d *Decoder) *Decoder {
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

// TestWithoutIsNotShared has two decoders of one table decode the same bytes, one of them
// without a field deep within their common parts.
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

// TestWithoutFallsBack decodes objects that are left to the generated code.
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
			got := same(t, d, test.data)
			if d.Stats().Generated != 1 || reflect.DeepEqual(got, newObject(d.typ.Elem())) {
				t.Errorf("%+v: got %+v", d.Stats(), got)
			}
		})
	}
}
