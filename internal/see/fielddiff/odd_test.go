package fielddiff

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

type withChannel struct {
	metav1.TypeMeta
	Channel chan int
}

type panicking struct{ Part *broken }

type broken struct{ name string }

func (broken) MarshalJSON() ([]byte, error) { panic("broken") }

// TestDiffDoesNotPanic compares values that no API has.
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
