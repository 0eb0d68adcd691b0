package fielddiff

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: map[string]string{"app.kubernetes.io/name": "web", "tier": "front"}},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "app:1", Args: []string{"a", "b"}}, {Name: "proxy", Image: "proxy:1"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(p)
	}
	return p
}

func TestDiffNamesFieldsAsUsersWriteThem(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing":     {nil, nil},
		"a field":     {func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning }, []string{`~ status.phase "Pending" "Running"`}},
		"a label":     {func(p *corev1.Pod) { p.Labels["app.kubernetes.io/name"] = "api" }, []string{`~ metadata.labels["app.kubernetes.io/name"] "web" "api"`}},
		"a container": {func(p *corev1.Pod) { p.Spec.Containers[1].Image = "proxy:2" }, []string{`~ spec.containers[name=proxy].image "proxy:1" "proxy:2"`}},
		"by position": {func(p *corev1.Pod) { p.Spec.Containers[0].Args = []string{"a", "c", "d"} },
			[]string{`~ spec.containers[name=app].args[1] "b" "c"`, `+ spec.containers[name=app].args[2] null "d"`}},
		"removed": {func(p *corev1.Pod) { delete(p.Labels, "tier"); p.Spec.Containers = p.Spec.Containers[:1] },
			[]string{`- metadata.labels.tier "front" null`, `- spec.containers[name=proxy] {"image":"proxy:1","name":"proxy","resources":{}} null`}},
		"another order": {func(p *corev1.Pod) { slices.Reverse(p.Spec.Containers) }, []string{`~ spec.containers ["app","proxy"] ["proxy","app"]`}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range Diff(pod(nil), pod(test.change)) {
				got = append(got, fmt.Sprintf("%c %s %s %s", "?+-~"[c.Kind], c.Path, Format(c.Old, 100), Format(c.New, 100)))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestDiffTakesWhatItIsGiven(t *testing.T) {
	var nilPod *corev1.Pod
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"n": int64(1)}}}
	for name, pair := range map[string][2]any{
		"nil and nil": {nil, nil}, "nil pointer": {nilPod, nil}, "no object": {7, 7}, "map": {u, u.Object},
	} {
		if changes := Diff(pair[0], pair[1]); len(changes) != 0 {
			t.Errorf("%s: %v", name, changes)
		}
	}
	if changes := Diff(nil, u); len(changes) != 1 || changes[0].Path != "spec" || changes[0].Kind != Added {
		t.Errorf("nil and an object: %v", changes)
	}
	if changes := Diff("a", 7); len(changes) != 1 || changes[0].Path != "" {
		t.Errorf("no objects: %v", changes)
	}
}

// values draws any JSON value.
func values(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just[any](nil), rapid.Map(rapid.Int64Range(0, 3), func(n int64) any { return n }),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "b"}), func(s string) any { return s }))
	if depth == 0 {
		return leaf
	}
	return rapid.OneOf(leaf,
		rapid.Map(rapid.SliceOfN(values(depth-1), 0, 3), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"name", "x", "y.z"}), values(depth-1), 0, 3), func(m map[string]any) any { return m }))
}

func TestPropertyDiffFindsWhatDiffers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		objects := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), values(3), 0, 3)
		old, new := objects.Draw(t, "old"), objects.Draw(t, "new")
		if changes := Diff(old, old); len(changes) != 0 {
			t.Fatalf("an object differs from itself: %v", changes)
		}
		changes := Diff(old, new)
		if (len(changes) == 0) != reflect.DeepEqual(old, new) {
			t.Fatalf("changes %v between %v and %v", changes, old, new)
		}
		seen, limit := map[string]bool{}, rapid.IntRange(0, 20).Draw(t, "limit")
		for _, c := range changes {
			if seen[c.Path] {
				t.Errorf("the path %s comes twice: %v", c.Path, changes)
			}
			seen[c.Path] = true
			if text := Format(c.New, limit); utf8.RuneCountInString(text) > limit || strings.ContainsAny(text, "\n\r") {
				t.Errorf("%d characters: %q", limit, text)
			}
		}
		if again := Diff(old, new); !reflect.DeepEqual(again, changes) {
			t.Errorf("first %v, then %v", changes, again)
		}
	})
}

func TestFormatIsOneShortLine(t *testing.T) {
	for want, got := range map[string]string{
		`"a\nb"`: Format("a\nb", 20), `"aaa…`: Format("aaaaaaaa", 5), `{"a":1}`: Format(map[string]any{"a": 1}, 20),
		"null": Format(nil, 20), "": Format("a", 0), `"ää…`: Format("äääää", 4),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func BenchmarkDiff(b *testing.B) {
	old, changed := pod(nil), pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	asMap := func(p *corev1.Pod) *unstructured.Unstructured {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(p)
		if err != nil {
			b.Fatal(err)
		}
		return &unstructured.Unstructured{Object: fields}
	}
	for name, pair := range map[string][2]any{
		"typed": {old, changed}, "typed-equal": {old, old.DeepCopy()},
		"unstructured": {asMap(old), asMap(changed)}, "unstructured-equal": {asMap(old), asMap(old)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Diff(pair[0], pair[1])
			}
		})
	}
}

func TestPathsLeadToSingleValues(t *testing.T) {
	before := pod(func(p *corev1.Pod) { p.Annotations = nil })
	after := pod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"a.example/b": "1", "c": "2"}
		p.Spec.NodeName = "n"
		p.Labels = map[string]string{}
	})
	want := Paths(after, before)
	got := Paths(before, after)
	if !slices.Equal(got, want) || !slices.Contains(got, `metadata.annotations["a.example/b"]`) ||
		!slices.Contains(got, "metadata.annotations.c") || !slices.Contains(got, "spec.nodeName") {
		t.Errorf("paths: %q, and in the other order %q", got, want)
	}
}
