package objects

import (
	"encoding/json"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// TestObjects makes objects twice: they are equal, and each has its own key, UID and version.
func TestObjects(t *testing.T) {
	for _, kind := range []Kind{Pods, UnlikePods, Deployments, ConfigMaps, Widgets} {
		seen := map[string]int{}
		for number := range 5_000 {
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

// TestUnlikePods checks that two of them have no string in common, but for the namespace and
// names of API versions.
func TestUnlikePods(t *testing.T) {
	texts := func(number int) map[string]bool {
		raw, err := json.Marshal(UnlikePod(number))
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
	if len(first) < 100 {
		t.Fatalf("there are %d strings", len(first))
	}
	for text := range first {
		if second[text] {
			t.Errorf("both have %s", text)
		}
	}
}

// TestSizes checks the sizes that the README names: widgets in JSON, pods in protobuf.
func TestSizes(t *testing.T) {
	raw, err := json.Marshal(Widget(12_345))
	if err != nil || len(raw) < 2_800 || len(raw) > 3_500 {
		t.Errorf("a widget has %d bytes in JSON, want about 3,000: %v", len(raw), err)
	}
	if n := Pod(12_345).Size(); n < 4_800 || n > 5_500 {
		t.Errorf("a pod has %d bytes in protobuf, want about 5,000", n)
	}
}
