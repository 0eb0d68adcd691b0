package apisim

import (
	"maps"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an API object: a Go type of the scheme, or a map. A stored object is immutable. A
// stored object of a Go type has no kind, which its resource knows.
type object interface {
	metav1.Object
	runtime.Object
}

func versionString(version uint64) string { return strconv.FormatUint(version, 10) }

func key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

func keyOf(obj object) string { return key(obj.GetNamespace(), obj.GetName()) }

// clone returns a copy that may be changed.
func clone[T object](obj T) T { return obj.DeepCopyObject().(T) }

// shallow returns a copy of which the fields may be set, but not the values that they refer to.
func shallow(obj object) object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return &unstructured.Unstructured{Object: maps.Clone(u.Object)}
	}
	of := reflect.ValueOf(obj).Elem()
	copied := reflect.New(of.Type())
	copied.Elem().Set(of)
	return copied.Interface().(object)
}

// withKind returns obj with its kind in the version of the request.
func withKind(obj object, gvk schema.GroupVersionKind) object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj // maps always have a kind
	}
	shown := shallow(obj)
	shown.GetObjectKind().SetGroupVersionKind(gvk)
	return shown
}

// withoutManaged returns obj without managed fields.
func withoutManaged(obj object) object {
	if len(obj.GetManagedFields()) == 0 {
		return obj
	}
	shown := shallow(obj)
	if u, ok := shown.(*unstructured.Unstructured); ok {
		u.Object["metadata"] = maps.Clone(u.Object["metadata"].(map[string]any))
	}
	shown.SetManagedFields(nil)
	return shown
}

// atVersion returns a copy of obj with another version.
func atVersion(obj object, version uint64) object {
	copied := clone(obj)
	copied.SetResourceVersion(versionString(version))
	return copied
}

// metadataOf returns the metadata of an object as an object of its own.
func metadataOf(obj object) *metav1.PartialObjectMetadata {
	partial := meta.AsPartialObjectMetadata(obj)
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return partial
}

// rememberTexts writes the texts of the quantities into an object. To encode a Quantity that has
// none is to write to it, which readers of a stored object may do at the same time.
func rememberTexts(obj object) {
	if m, ok := obj.(interface{ Size() int }); ok { // of protobuf, which looks at each value
		m.Size()
	}
}

// setStatus gives dst the status of src, which is of the same type. A nil src removes it.
func setStatus(dst, src object) {
	if u, isMap := dst.(*unstructured.Unstructured); isMap {
		delete(u.Object, "status")
		if src == nil {
			return
		}
		if status, ok := src.(*unstructured.Unstructured).Object["status"]; ok {
			u.Object["status"] = status
		}
		return
	}
	field := reflect.ValueOf(dst).Elem().FieldByName("Status")
	switch {
	case !field.IsValid():
	case src == nil:
		field.SetZero()
	default:
		field.Set(reflect.ValueOf(src).Elem().FieldByName("Status"))
	}
}

// desired returns an object without its metadata, and without the status if that is written
// separately. A change of the rest begins a generation.
func desired(r *resource, obj object) any {
	bare := shallow(obj)
	if r.HasStatus {
		setStatus(bare, nil)
	}
	if u, isMap := bare.(*unstructured.Unstructured); isMap {
		delete(u.Object, "metadata")
		return u.Object
	}
	reflect.ValueOf(bare).Elem().FieldByName("ObjectMeta").SetZero()
	return bare
}
