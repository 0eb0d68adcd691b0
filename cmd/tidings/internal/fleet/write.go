package fleet

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Object is an object of the cluster.
type Object interface {
	metav1.Object
	runtime.Object
}

// background is the context of all writes: a write that has begun is completed.
var background = context.Background()

// create creates an object and returns its stored state.
func create[T Object](f *Fleet, obj T) (stored T, err error) {
	began := time.Now()
	created, err := f.server.Create(background, obj)
	if err = f.report("create", began, obj, created, err); err == nil {
		stored = created.(T)
	}
	return stored, err
}

// update writes a changed copy of an object. It reports whether the server accepted it.
func update[T Object](f *Fleet, obj T, change func(T)) (bool, error) {
	next := obj.DeepCopyObject().(T)
	change(next)
	began := time.Now()
	stored, err := f.server.Update(background, next)
	return tolerate(f.report("update", began, obj, stored, err))
}

// remove deletes an object. It reports whether there was one.
func remove(f *Fleet, obj Object) (bool, error) {
	began := time.Now()
	last, err := f.server.Delete(background, resourceOf(obj), obj.GetNamespace(), obj.GetName())
	return tolerate(f.report("delete", began, obj, last, err))
}

// report calls OnWrite for a write that has changed an object, and says what failed.
func (f *Fleet) report(verb string, began time.Time, old Object, stored runtime.Object,
	err error) error {
	if err != nil {
		return fmt.Errorf("fleet: %s %T %s/%s: %w", verb, old, old.GetNamespace(), old.GetName(),
			err)
	}
	now := stored.(Object)
	if f.populated && f.o.OnWrite != nil && now.GetResourceVersion() != old.GetResourceVersion() {
		f.o.OnWrite(Change{Began: began, Object: now})
	}
	return nil
}

// tolerate reports whether a write was made. That the server has refused it is no error: another
// client has changed or deleted the object or its namespace, or has created a deployment whose
// pods the server does not accept.
func tolerate(err error) (bool, error) {
	if apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
		return false, nil
	}
	return err == nil, err
}

// get returns the object of a name, or nil. Its type is that of another object.
func get[T Object](f *Fleet, of T, namespace, name string) (found T, err error) {
	obj, err := f.server.Get(background, resourceOf(of), namespace, name)
	if apierrors.IsNotFound(err) {
		return found, nil
	}
	if err != nil {
		return found, err
	}
	return obj.(T), nil
}

// list returns the objects of a type in a namespace.
func list[T Object](f *Fleet, of T, namespace string) ([]T, error) {
	items, _, err := f.server.List(background, resourceOf(of), namespace)
	var objects []T
	for _, item := range items {
		objects = append(objects, item.(T))
	}
	return objects, err
}

// resourceOf returns the resource of an object. The names of the fleet's resources are regular.
func resourceOf(obj runtime.Object) schema.GroupVersionResource {
	kind := obj.GetObjectKind().GroupVersionKind()
	if _, ok := obj.(*unstructured.Unstructured); !ok {
		kinds, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			panic(err) // client-go knows the types of this package
		}
		kind = kinds[0]
	}
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	return resource
}
