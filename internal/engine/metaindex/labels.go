package metaindex

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// Object is what has labels and owners.
type Object interface {
	GetLabels() map[string]string
	GetOwnerReferences() []metav1.OwnerReference
}

// Label identifies the index of the label of a key.
type Label string

// String returns a text for errors.
func (l Label) String() string { return "label " + string(l) }

// Labels returns the labels of an object, for a selector. Nothing is copied.
func Labels(obj Object) labels.Labels {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return labels.Set(obj.GetLabels())
	}
	found, _ := metadata(u)["labels"].(map[string]any)
	for _, value := range found {
		if _, ok := value.(string); !ok {
			return labels.Set(nil) // as GetLabels has it
		}
	}
	return untyped(found)
}

// LabelValues returns the value of a label, for an index: one, or none.
func LabelValues(obj Object, key string) []string {
	if value, ok := Labels(obj).Lookup(key); ok {
		return []string{value}
	}
	return nil
}

// metadata returns the metadata of an unstructured object, for reading only.
func metadata(u *unstructured.Unstructured) map[string]any {
	m, _ := u.Object["metadata"].(map[string]any)
	return m
}

// untyped has the labels of an unstructured object; the values are strings.
type untyped map[string]any

var _ labels.Labels = untyped(nil)

func (l untyped) Has(key string) bool {
	_, ok := l[key]
	return ok
}

func (l untyped) Get(key string) string {
	value, _ := l.Lookup(key)
	return value
}

func (l untyped) Lookup(key string) (value string, exists bool) {
	value, exists = l[key].(string)
	return value, exists
}
