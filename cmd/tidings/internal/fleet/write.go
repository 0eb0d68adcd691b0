package fleet

import (
	"context"
	"fmt"
	"slices"
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

// create creates the object in slot and replaces it by the stored state.
func create[T Object](f *Fleet, slot *T) error {
	began := time.Now()
	stored, err := f.server.Create(background, *slot)
	return keep(f, "create", began, slot, stored, err)
}

// update writes a changed copy of the object in slot and replaces it by the stored state.
func update[T Object](f *Fleet, slot *T, change func(T)) error {
	next := (*slot).DeepCopyObject().(T)
	change(next)
	began := time.Now()
	stored, err := f.server.Update(background, next)
	return keep(f, "update", began, slot, stored, err)
}

// remove deletes an object, which may be deleted already.
func remove[T Object](f *Fleet, obj T) error {
	began := time.Now()
	last, err := f.server.Delete(background, resourceOf(obj), obj.GetNamespace(), obj.GetName())
	if apierrors.IsNotFound(err) {
		return nil
	}
	return keep(f, "delete", began, new(obj), last, err)
}

func keep[T Object](f *Fleet, verb string, began time.Time, slot *T, stored runtime.Object,
	err error) error {
	old := *slot
	if err != nil {
		return fmt.Errorf("fleet: %s %T %s/%s: %w", verb, old, old.GetNamespace(), old.GetName(),
			err)
	}
	*slot = stored.(T)
	if f.o.OnWrite != nil && (*slot).GetResourceVersion() != old.GetResourceVersion() {
		f.o.OnWrite(Change{Began: began, Object: *slot})
	}
	return nil
}

// get replaces the object in slot by its newest state. It reports whether there is one.
func get[T Object](f *Fleet, slot *T) (bool, error) {
	obj := *slot
	newest, err := f.server.Get(background, resourceOf(obj), obj.GetNamespace(), obj.GetName())
	if err != nil {
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return false, err
	}
	*slot = newest.(T)
	return true, nil
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

// tolerate returns nil for an error that the write of another client explains: an object is
// gone, exists already, was changed, or its namespace is being deleted. The next step lists the
// namespace. An application of another client may be one that the server refuses.
func (f *Fleet) tolerate(a *app, err error) error {
	switch {
	case isConflict(err):
		f.Touch(a.deployment.Namespace)
		return nil
	case err != nil && a.foreign && apierrors.ReasonForError(err) != metav1.StatusReasonUnknown:
		f.forget(a)
		return nil
	}
	return err
}

func isConflict(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err) ||
		apierrors.IsConflict(err) || apierrors.IsForbidden(err)
}

// forget takes an application from the lists of those to be reconciled.
func (f *Fleet) forget(a *app) {
	is := func(other *app) bool { return other == a }
	f.busy, f.urgent = slices.DeleteFunc(f.busy, is), slices.DeleteFunc(f.urgent, is)
}
