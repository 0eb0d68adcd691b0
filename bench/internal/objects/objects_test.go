package objects

import (
	"encoding/json"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

var kinds = []Kind{Pods, UnlikePods, Deployments, ConfigMaps, Widgets}

// TestRepeatable makes objects twice: only the seed and the number may matter.
func TestRepeatable(t *testing.T) {
	for _, kind := range kinds {
		for number := range 100 {
			first, again := kind.New(1, number), kind.New(1, number)
			if !equality.Semantic.DeepEqual(first, again) {
				t.Fatalf("%s %d differs when it is made again", kind, number)
			}
			if other := kind.New(2, number); other.GetUID() == first.GetUID() {
				t.Fatalf("%s %d has the UID %s for two seeds", kind, number, other.GetUID())
			}
		}
	}
}

// TestUnique asks for one key, one UID and one version per object.
func TestUnique(t *testing.T) {
	for _, kind := range kinds {
		seen := map[string]int{}
		for number := range 5_000 {
			o := kind.New(1, number)
			for _, own := range []string{"key " + o.GetNamespace() + "/" + o.GetName(), "uid " + string(o.GetUID()), "version " + o.GetResourceVersion()} {
				if before, ok := seen[own]; ok {
					t.Fatalf("%s %d and %d have the same %s", kind, before, number, own)
				}
				seen[own] = number
			}
		}
	}
}

// TestPodsOfAWorkload asks that the pods of a workload share their template, and that the
// rest is their own.
func TestPodsOfAWorkload(t *testing.T) {
	first, second, other := Pod(1, 0), Pod(1, 1), Pod(1, Replicas)
	if first.OwnerReferences[0].UID != OwnerUID(1, 0) || second.OwnerReferences[0].UID != OwnerUID(1, 0) || other.OwnerReferences[0].UID != OwnerUID(1, 1) {
		t.Error("owners are not those of the workloads")
	}
	if !equality.Semantic.DeepEqual(first.Labels, second.Labels) {
		t.Errorf("labels of one workload differ: %v and %v", first.Labels, second.Labels)
	}
	if !equality.Semantic.DeepEqual(first.Spec.Containers[0].Env, second.Spec.Containers[0].Env) {
		t.Error("the environments of one workload differ")
	}
	token := func(p *corev1.Pod) string { return p.Spec.Volumes[1].Name }
	for what, pair := range map[string][2]string{
		"token volume": {token(first), token(second)},
		"container id": {first.Status.ContainerStatuses[0].ContainerID, second.Status.ContainerStatuses[0].ContainerID},
		"address":      {first.Status.PodIP, second.Status.PodIP},
		"time":         {first.CreationTimestamp.String(), second.CreationTimestamp.String()},
	} {
		if pair[0] == pair[1] {
			t.Errorf("two pods have the same %s %s", what, pair[0])
		}
	}
}

// TestUnlikePods asks that two of them have no string in common, but for the namespace and
// names of API versions.
func TestUnlikePods(t *testing.T) {
	texts := func(number int) map[string]bool {
		raw, err := json.Marshal(UnlikePod(1, number))
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

// TestWidgetSize asks for about 3 KB in JSON.
func TestWidgetSize(t *testing.T) {
	raw, err := json.Marshal(Widget(1, 12_345))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 2_800 || len(raw) > 3_500 {
		t.Errorf("a widget has %d bytes in JSON, want about 3,000", len(raw))
	}
}

// TestPodSize asks for about 5 KB in protobuf.
func TestPodSize(t *testing.T) {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	raw, err := runtime.Encode(info.Serializer, Pod(1, 12_345))
	if err != nil {
		t.Fatal(err)
	}
	if len(raw) < 4_800 || len(raw) > 5_500 {
		t.Errorf("a pod has %d bytes in protobuf, want about 5,000", len(raw))
	}
}
