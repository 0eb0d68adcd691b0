package sharedinformer

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadata returns the metadata of a cached object, nil if it has none: a transform may return
// any type.
func metadata(obj any) metav1.Object {
	if m, err := meta.Accessor(obj); err == nil {
		return m
	}
	return nil
}

// versionAndUID returns the version and UID of a cached object, "" without metadata.
func versionAndUID(obj any) (version, uid string) {
	if m := metadata(obj); m != nil {
		return m.GetResourceVersion(), string(m.GetUID())
	}
	return "", ""
}

// isUnchanged reports whether an update changes nothing. client-go calls an update with an equal
// version a resync; an update without versions counts as a change. If the versions are the
// server's, the objects are compared as well: after versions went back, one version may name
// two states.
func (i *Informer) isUnchanged(old, new any) bool {
	before, _ := versionAndUID(old)
	after, uid := versionAndUID(new)
	if before == "" || before != after {
		return false
	}
	return uid == "" || i.versionsUntrusted() || i.ownVersions.Load() || reflect.DeepEqual(old, new)
}

// describeType names the type of an example, with its kind if the type does not determine it.
func describeType(example runtime.Object) string {
	if example == nil {
		return "<unspecified>"
	}
	switch o := example.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if gvk := o.GetObjectKind().GroupVersionKind(); !gvk.Empty() {
			return gvk.String()
		}
	}
	return reflect.TypeOf(example).String()
}
