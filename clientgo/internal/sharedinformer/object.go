package sharedinformer

import (
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// metadata returns the metadata of a cached object, or nil: a transform may have made
// anything of it.
func metadata(obj any) metav1.Object {
	switch o := obj.(type) {
	case nil:
		return nil
	case metav1.Object:
		return o
	default:
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil
		}
		return m
	}
}

// describe returns the version and UID of a cached object, "" for what it has not got.
func describe(obj any) (version, uid string) {
	if m := metadata(obj); m != nil {
		return m.GetResourceVersion(), string(m.GetUID())
	}
	return "", ""
}

// isUnchanged reports whether an update brings nothing new: client-go calls one of an equal
// version a resync. Without versions that cannot be said, and it counts as a change. Where
// the versions are the server's, the objects are compared as well: a version may name
// another state after versions went back.
func (i *Informer) isUnchanged(old, new any) bool {
	before, _ := describe(old)
	after, uid := describe(new)
	if before == "" || before != after {
		return false
	}
	return uid == "" || i.versionsUntrusted() || i.ownVersions.Load() || reflect.DeepEqual(old, new)
}

// describeType names the type of an example, with its kind if the type does not say it.
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
