package listwatch

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func pod(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: version, UID: "u"}}
}

func thing(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName("a")
	return u
}

// TestKindItem checks which objects belong to a collection, by its example.
func TestKindItem(t *testing.T) {
	const ok = ""
	for _, tt := range []struct {
		name    string
		example runtime.Object
		obj     runtime.Object
		err     string // a part of the error
	}{
		{"the type", &corev1.Pod{}, pod("a", "1"), ok},
		{"another type", &corev1.Pod{}, &corev1.Service{}, "*v1.Service instead of *v1.Pod"},
		{"any type", nil, pod("a", "1"), ok},
		{"nothing", nil, nil, "received nothing"},
		{"no metadata", nil, &metav1.Status{}, "does not implement"},
		{"the kind", thing("example.com/v1", "Thing"), thing("example.com/v1", "Thing"), ok},
		{"another kind", thing("example.com/v1", "Thing"), thing("example.com/v1", "Other"), "Other"},
		{"another version", thing("example.com/v1", "Thing"), thing("example.com/v2", "Thing"), "v2"},
		{"no type where a type was asked for", &corev1.Pod{}, thing("v1", "Pod"), "instead of *v1.Pod"},
		{"any kind", &unstructured.Unstructured{}, thing("example.com/v1", "Other"), ok},
		{"a table", &unstructured.Unstructured{}, thing("meta.k8s.io/v1", "Table"), "Table"},
		{"an older table", &unstructured.Unstructured{}, thing("meta.k8s.io/v1beta1", "Table"), "Table"},
		{"a table of somebody else", &unstructured.Unstructured{}, thing("example.com/v1", "Table"), ok},
	} {
		t.Run(tt.name, func(t *testing.T) {
			item := kindOf(tt.example).item(tt.obj)
			switch {
			case tt.err == ok && item.Err != nil:
				t.Errorf("the object is refused: %v", item.Err)
			case tt.err == ok && item.Object != any(tt.obj):
				t.Errorf("the item has the object %v", item.Object)
			case tt.err != ok && (item.Err == nil || !strings.Contains(item.Err.Error(), tt.err)):
				t.Errorf("the error is %v, want one with %q", item.Err, tt.err)
			}
		})
	}
}
