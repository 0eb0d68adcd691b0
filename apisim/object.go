package apisim

import (
	"maps"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is an API object: a Go type of the scheme, or a map. One that is stored is
// immutable; a typed one has no kind then, as its resource says it.
type object interface {
	metav1.Object
	runtime.Object
}

func versionString(version uint64) string { return strconv.FormatUint(version, 10) }

func keyOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// clone returns a copy that may be changed.
func clone(obj object) object { return obj.DeepCopyObject().(object) }

// shallow returns a copy whose own fields may be set, and nothing below them.
func shallow(obj object) object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		fields := make(map[string]any, len(u.Object))
		maps.Copy(fields, u.Object)
		return &unstructured.Unstructured{Object: fields}
	}
	of := reflect.ValueOf(obj).Elem()
	copied := reflect.New(of.Type())
	copied.Elem().Set(of)
	return copied.Interface().(object)
}

// withKind returns obj with its kind, as it is shown outside of lists, in the version
// that was asked for.
func withKind(obj object, gvk schema.GroupVersionKind) object {
	if obj.GetObjectKind().GroupVersionKind() == gvk {
		return obj // maps always have one
	}
	shown := shallow(obj)
	shown.GetObjectKind().SetGroupVersionKind(gvk)
	return shown
}

// atVersion returns obj as of a version. Its metadata is its own.
func atVersion(obj object, version uint64) object {
	copied := clone(obj)
	copied.SetResourceVersion(versionString(version))
	return copied
}

// metadataOf returns the metadata of an object as an object of its own.
func metadataOf(obj object) *metav1.PartialObjectMetadata {
	partial := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(), Labels: obj.GetLabels(),
		Annotations: obj.GetAnnotations(), OwnerReferences: obj.GetOwnerReferences(),
		Finalizers: obj.GetFinalizers(), ManagedFields: obj.GetManagedFields(),
	}}
	partial.SetGroupVersionKind(metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata"))
	return partial
}

// statusOf returns the status of an object, if it has one.
func statusOf(obj object) (status any, ok bool) {
	if u, isMap := obj.(*unstructured.Unstructured); isMap {
		status, ok = u.Object["status"]
		return status, ok
	}
	field := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !field.IsValid() {
		return nil, false
	}
	return field.Interface(), true
}

// setStatus gives dst the status of src. They are of one type.
func setStatus(dst, src object) {
	if u, isMap := dst.(*unstructured.Unstructured); isMap {
		if status, ok := statusOf(src); ok {
			u.Object["status"] = status
		} else {
			delete(u.Object, "status")
		}
		return
	}
	if field := reflect.ValueOf(dst).Elem().FieldByName("Status"); field.IsValid() {
		field.Set(reflect.ValueOf(src).Elem().FieldByName("Status"))
	}
}

// clearStatus takes the status away.
func clearStatus(obj object) {
	if u, isMap := obj.(*unstructured.Unstructured); isMap {
		delete(u.Object, "status")
		return
	}
	if field := reflect.ValueOf(obj).Elem().FieldByName("Status"); field.IsValid() {
		field.SetZero()
	}
}

// counted returns an object without metadata, and without the status if that is
// written separately: what a generation counts.
func counted(r *resource, obj object) any {
	bare := shallow(obj)
	if r.HasStatus {
		clearStatus(bare)
	}
	if u, isMap := bare.(*unstructured.Unstructured); isMap {
		delete(u.Object, "metadata")
		return u.Object
	}
	reflect.ValueOf(bare).Elem().FieldByName("ObjectMeta").SetZero()
	return bare
}
