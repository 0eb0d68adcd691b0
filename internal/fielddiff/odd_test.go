package fielddiff

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type withChannel struct {
	metav1.TypeMeta
	Channel chan int
}

type panicking struct{ Part *broken }

type broken struct{ name string }

func (broken) MarshalJSON() ([]byte, error) { panic("broken") }

// TestDiffDoesNotPanic gives what no API has.
func TestDiffDoesNotPanic(t *testing.T) {
	double := new(*corev1.Pod)
	odd := []any{
		nil, (*corev1.Pod)(nil), (*unstructured.Unstructured)(nil), &unstructured.Unstructured{}, &unstructured.UnstructuredList{},
		pod(nil), *pod(nil), double, &metav1.PartialObjectMetadata{}, &corev1.PodList{Items: []corev1.Pod{*pod(nil)}},
		&withChannel{Channel: make(chan int)}, &panicking{&broken{"a"}}, &panicking{&broken{"b"}}, map[string]any(nil), map[string]any{"": nil},
		map[string]any{"l": []any(nil)}, map[string]any{"l": []any{}}, map[string]any{"l": []any{nil, map[string]any(nil)}},
		map[string]any{"l": []any{map[string]any{"name": 7}, map[string]any{"name": "7"}}}, map[string]any{"f": func() {}},
		map[string]any{"n": int(1), "m": map[string]string{"a": "b"}}, 7, "text", []any{1}, make(chan int), new(int),
	}
	for _, old := range odd {
		for _, new := range odd {
			for _, c := range Diff(old, new) {
				if c.Kind < Added || c.Kind > Changed {
					t.Errorf("%T and %T: kind %d", old, new, c.Kind)
				}
				Format(c.Old, 80)
				Format(c.New, 80)
			}
		}
	}
}

func TestDiffTellsEmptyFromMissing(t *testing.T) {
	for name, pair := range map[string][2]any{
		"a list": {[]any(nil), []any{}}, "an object": {map[string]any(nil), map[string]any{}}, "null": {nil, map[string]any{}},
	} {
		changes := Diff(map[string]any{"x": pair[0]}, map[string]any{"x": pair[1]})
		if len(changes) != 1 || changes[0].Kind != Changed || changes[0].Path != "x" {
			t.Errorf("%s: %v", name, changes)
		}
	}
	if changes := Diff(map[string]any{"x": math.NaN()}, map[string]any{"x": math.NaN()}); len(changes) != 0 {
		t.Errorf("no number: %v", changes)
	}
}

func TestDiffQuotesWhatWouldBeMisread(t *testing.T) {
	list := func(name, value string) map[string]any {
		return map[string]any{"l": []any{map[string]any{"key": name, "v": value}}}
	}
	for name, want := range map[string]string{
		"a": `l[key=a].v`, "node.kubernetes.io/not-ready": `l[key=node.kubernetes.io/not-ready].v`, "a]b": `l[key="a]b"].v`, "": `l[key=""].v`, "a\nb": `l[key="a\nb"].v`,
	} {
		if changes := Diff(list(name, "1"), list(name, "2")); len(changes) != 1 || changes[0].Path != want {
			t.Errorf("%q: %v, want the path %s", name, changes, want)
		}
	}
}

func TestDiffOfOtherForms(t *testing.T) {
	typed := pod(nil)
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		t.Fatal(err)
	}
	if changes := Diff(typed, &unstructured.Unstructured{Object: fields}); len(changes) != 0 {
		t.Errorf("a typed pod and the same unstructured: %v", changes)
	}
	old := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Name: "a", UID: "1"}, {Name: "a", UID: "2"}}}}
	now := old.DeepCopy()
	now.OwnerReferences[1].Kind = "Job"
	if changes := Diff(old, now); len(changes) != 1 || changes[0].Path != "metadata.ownerReferences[uid=2].kind" {
		t.Errorf("metadata: %v", changes)
	}
	if changes := Diff(nil, 7); len(changes) != 1 || changes[0].Kind != Added {
		t.Errorf("nil and no object: %v", changes)
	}
}

func TestFormatLeavesCharactersReadable(t *testing.T) {
	if got := Format(map[string]any{"a": "1 < 2 && 3 > 2"}, 80); got != `{"a":"1 < 2 && 3 > 2"}` {
		t.Error(got)
	}
	if got := Format(func() {}, 80); strings.Contains(got, "\n") || got == "" {
		t.Errorf("a function is %q", got)
	}
}

func FuzzDiff(f *testing.F) {
	f.Add([]byte(`{"a":[{"name":"x"},{"name":"y"}]}`), []byte(`{"a":[{"name":"y"},{"name":"x","v":1.5}]}`), 10)
	f.Add([]byte(`{"a":{"b.c":null}}`), []byte(`{"a":[]}`), 0)
	f.Fuzz(func(t *testing.T, before, after []byte, limit int) {
		var old, new map[string]any
		if json.Unmarshal(before, &old) != nil || json.Unmarshal(after, &new) != nil {
			return
		}
		if changes := Diff(old, old); len(changes) != 0 {
			t.Fatalf("an object differs from itself: %v", changes)
		}
		changes := Diff(old, new)
		if equal := reflect.DeepEqual(old, new) || len(old)+len(new) == 0; equal != (len(changes) == 0) {
			t.Fatalf("changes %v between %v and %v", changes, old, new)
		}
		seen := map[string]bool{}
		for _, c := range changes {
			if seen[c.Path] {
				t.Errorf("the path %s comes twice: %v", c.Path, changes)
			}
			seen[c.Path] = true
			if text := Format(c.New, limit); utf8.RuneCountInString(text) > max(limit, 0) || strings.ContainsAny(text, "\n\r") {
				t.Errorf("%d characters: %q", limit, text)
			}
		}
		if again := Diff(old, new); !reflect.DeepEqual(again, changes) {
			t.Errorf("first %v, then %v", changes, again)
		}
	})
}

// realisticPod is as a cluster has it: 3 containers, probes, volumes, conditions, managed fields.
func realisticPod() *corev1.Pod {
	now := metav1.Now()
	p := pod(nil)
	p.UID, p.Namespace, p.ResourceVersion, p.CreationTimestamp = types.UID("0d2f"), "shop", "123456", now
	p.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": strings.Repeat("a", 64)}
	for range 3 {
		p.ManagedFields = append(p.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubelet", Operation: "Update", APIVersion: "v1", Time: &now,
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{}}},"f:phase":{}}}`)})
	}
	p.Spec.Containers = nil
	for _, name := range []string{"app", "proxy", "logs"} {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{
			Name: name, Image: "registry.example.com/" + name + ":1.2.3", Args: []string{"--v=2", "--port=8080"},
			Ports:        []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}, {Name: "metrics", ContainerPort: 9090}},
			Env:          []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}, {Name: "C", Value: "3"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "config", MountPath: "/etc/app"}, {Name: "token", MountPath: "/var/run/secrets"}},
			Resources:    corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}},
		})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Ready: true, Image: name, ImageID: strings.Repeat("f", 64)})
	}
	p.Spec.Tolerations = []corev1.Toleration{{Key: "node.kubernetes.io/not-ready", Operator: "Exists"}, {Key: "node.kubernetes.io/unreachable", Operator: "Exists"}}
	for _, condition := range []corev1.PodConditionType{"Initialized", "Ready", "ContainersReady", "PodScheduled"} {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: condition, Status: "True", LastTransitionTime: now})
	}
	return p
}

func BenchmarkRealisticPod(b *testing.B) {
	old := realisticPod()
	changed := old.DeepCopy()
	changed.ResourceVersion, changed.Status.Phase = "123457", corev1.PodRunning
	changed.Status.Conditions[1].Status = "False"
	fieldsOf := func(p *corev1.Pod) *unstructured.Unstructured {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			b.Fatal(err)
		}
		return &unstructured.Unstructured{Object: fields}
	}
	for _, test := range []struct {
		name     string
		old, new any
		want     int
	}{
		{"typed", old, changed, 3}, {"typed-equal", old, old.DeepCopy(), 0},
		{"unstructured", fieldsOf(old), fieldsOf(changed), 3}, {"unstructured-equal", fieldsOf(old), fieldsOf(old), 0},
	} {
		b.Run(test.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if changes := Diff(test.old, test.new); len(changes) != test.want {
					b.Fatal(changes)
				}
			}
		})
	}
}
