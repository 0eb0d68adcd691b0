package objects

import (
	"encoding/json"
	"reflect"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestObjects makes objects twice: they are equal, and each has its own key, UID and version.
func TestObjects(t *testing.T) {
	for _, kind := range []Kind{
		Pods, UnlikePods, Deployments, ConfigMaps, Widgets, Databases, UnlikeDatabases, DatabasesOf(1),
	} {
		seen := map[string]int{}
		for number := range 2_000 {
			o := kind.New(number)
			if number < 100 && !equality.Semantic.DeepEqual(o, kind.New(number)) {
				t.Fatalf("%s %d differs when it is made again", kind, number)
			}
			for _, own := range []string{
				"key " + o.GetNamespace() + "/" + o.GetName(), "uid " + string(o.GetUID()),
				"version " + o.GetResourceVersion(),
			} {
				if before, ok := seen[own]; ok {
					t.Fatalf("%s %d and %d have the same %s", kind, before, number, own)
				}
				seen[own] = number
			}
		}
	}
}

// TestPodsOfAWorkload checks that the pods of a workload share their template, and that the
// rest is their own.
func TestPodsOfAWorkload(t *testing.T) {
	first, second, other := Pod(0), Pod(1), Pod(Replicas)
	owner := func(p *corev1.Pod) any { return p.OwnerReferences[0].UID }
	if owner(first) != owner(second) || owner(first) == owner(other) {
		t.Error("owners are not those of the workloads")
	}
	env := func(p *corev1.Pod) any { return p.Spec.Containers[0].Env }
	if !equality.Semantic.DeepEqual(first.Labels, second.Labels) ||
		!equality.Semantic.DeepEqual(env(first), env(second)) {
		t.Error("the labels or environments of one workload differ")
	}
	for _, own := range []func(*corev1.Pod) string{
		func(p *corev1.Pod) string { return p.Spec.Volumes[1].Name }, // the token
		func(p *corev1.Pod) string { return p.Status.ContainerStatuses[0].ContainerID },
		func(p *corev1.Pod) string { return p.Status.PodIP },
		func(p *corev1.Pod) string { return p.CreationTimestamp.String() },
	} {
		if own(first) == own(second) {
			t.Errorf("two pods have the same %s", own(first))
		}
	}
}

// TestUnlike checks that two unlike objects have no string in common, but for the namespace and
// names of API versions.
func TestUnlike(t *testing.T) {
	for _, kind := range []Kind{UnlikePods, UnlikeDatabases} {
		t.Run(string(kind), func(t *testing.T) { testUnlike(t, kind) })
	}
}

func testUnlike(t *testing.T, kind Kind) {
	texts := func(number int) map[string]bool {
		o := kind.New(number)
		o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]bool{}
		for _, text := range regexp.MustCompile(`:"[^"]{8,}"`).FindAllString(string(raw), -1) {
			found[text] = true
		}
		return found
	}
	first, second := texts(0), texts(1)
	if len(first) < 70 {
		t.Fatalf("there are %d strings", len(first))
	}
	for text := range first {
		if second[text] {
			t.Errorf("both have %s", text)
		}
	}
}

// TestDatabases checks that each kind of databases has a Go type of its own, and that a copy of a
// database is like it and shares nothing with it.
func TestDatabases(t *testing.T) {
	scheme := Scheme()
	types := map[reflect.Type]bool{}
	for number := range DatabaseTypes {
		kind := DatabasesOf(number)
		o := kind.New(7)
		gvks, _, err := scheme.ObjectKinds(o)
		if err != nil || len(gvks) != 1 || gvks[0] != kind.GroupVersionKind() {
			t.Errorf("%s: the scheme has the kinds %v, %v", kind, gvks, err)
		}
		types[reflect.TypeOf(o)] = true
		c := o.DeepCopyObject()
		if !equality.Semantic.DeepEqual(o, c) {
			t.Errorf("%s: a copy differs", kind)
		}
		randomOf("copy", number).scramble(reflect.ValueOf(c).Elem())
		if !equality.Semantic.DeepEqual(o, kind.New(7)) {
			t.Errorf("%s: a copy shares parts with the original", kind)
		}
	}
	if len(types) != DatabaseTypes {
		t.Errorf("there are %d Go types of databases, want %d", len(types), DatabaseTypes)
	}
}

// TestSizes checks the sizes that the README names: custom resources in JSON, pods in protobuf.
func TestSizes(t *testing.T) {
	raw, err := json.Marshal(Widget(12_345))
	if err != nil || len(raw) < 2_800 || len(raw) > 3_500 {
		t.Errorf("a widget has %d bytes in JSON, want about 3,000: %v", len(raw), err)
	}
	raw, err = json.Marshal(Databases.New(12_345))
	if err != nil || len(raw) < 4_700 || len(raw) > 5_300 {
		t.Errorf("a database has %d bytes in JSON, want about 5,000: %v", len(raw), err)
	}
	if n := Pod(12_345).Size(); n < 4_800 || n > 5_500 {
		t.Errorf("a pod has %d bytes in protobuf, want about 5,000", n)
	}
	for percent, o := range map[int]interface {
		metav1.Object
		Size() int
	}{28: Pod(12_345), 37: Deployment(12_345)} {
		whole := o.Size()
		o.SetManagedFields(nil)
		if got := 100 * (whole - o.Size()) / whole; got < percent-3 || got > percent+3 {
			t.Errorf("managed fields are %d %% of a %T, docs/memory.md has %d %%", got, o, percent)
		}
	}
}
