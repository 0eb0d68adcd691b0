package apisim

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Create adds a copy of an object, status included, and returns a copy of it as it is stored. Its
// errors are those of a client's request, with the remedy if the object's namespace does not exist.
// The function [Create] returns the Go type of its argument.
func (s *Server) Create(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	r, given, _, err := s.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	made, err := s.create(r, given, writeOptions{part: wholeObject})
	if apierrors.IsNotFound(err) { // there is nothing else to be found
		err = fmt.Errorf("%w: create the Namespace first, or add the object with Load", err)
	}
	return direct(made, err)
}

// Update replaces an object by a copy of another one, status included, and returns a copy of it as
// it is stored. A resource version in the given object must be the present one.
func (s *Server) Update(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	r, given, _, err := s.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	stored, _, err := s.update(r, given, writeOptions{part: wholeObject})
	return direct(stored, err)
}

// Delete deletes an object with a grace period of 0. It returns a copy of the last state, with the
// version of the deletion. An object with finalizers is marked, and returned with the mark. The
// update that removes its last finalizer removes it.
func (s *Server) Delete(_ context.Context, gvr schema.GroupVersionResource,
	namespace, name string) (runtime.Object, error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, err
	}
	obj, _, err := s.delete(r, namespace, name, metav1.NewDeleteOptions(0))
	return direct(obj, err)
}

// Expire deletes objects like a server whose storage lets them expire together, such as events of
// one minute: all these deletes have one resource version. A watch that is cut between two of them
// and resumed from that version does not receive the others (kubernetes/kubernetes#110210). Expire
// ignores finalizers and grace periods.
func (s *Server) Expire(_ context.Context, gvr schema.GroupVersionResource,
	namespace string, names ...string) error {
	r, err := s.find(gvr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	expired := make([]object, len(names))
	for i, name := range names {
		if expired[i], err = s.getLocked(r, namespace, name); err != nil {
			return err
		}
	}
	s.advanceLocked()
	for _, obj := range expired {
		s.storeLocked(r, obj, nil)
	}
	return nil
}

// Get returns a copy of a stored object.
func (s *Server) Get(_ context.Context, gvr schema.GroupVersionResource,
	namespace, name string) (runtime.Object, error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, err
	}
	return direct(s.get(r, namespace, name))
}

// List returns copies of the stored objects of a namespace, or of all namespaces for "", ordered by
// namespace and name, and the version of the state.
func (s *Server) List(_ context.Context, gvr schema.GroupVersionResource,
	namespace string) (objects []runtime.Object, version string, err error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	state, at := r.objects.Copy(), s.version
	s.mu.Unlock()
	for _, obj := range inNamespace(state, namespace, "") {
		objects = append(objects, clone(obj))
	}
	return objects, versionString(at), nil
}

// direct returns a copy of a stored object, which the caller may change.
func direct(stored object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return clone(stored), nil
}

func (s *Server) find(gvr schema.GroupVersionResource) (*resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.resources[gvr]
	if !ok {
		return nil, errNoResource()
	}
	return r, nil
}

func (s *Server) get(r *resource, namespace, name string) (object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.getLocked(r, namespace, name)
}

// servesLocked reports whether a resource is still served at its path.
func (s *Server) servesLocked(r *resource) bool { return s.resources[r.gvr()] == r }

func (s *Server) getLocked(r *resource, namespace, name string) (object, error) {
	obj, ok := r.objects.Get(key(namespace, name))
	if !ok || !s.servesLocked(r) {
		return nil, errNotFound(r, name)
	}
	return obj, nil
}

// resourceOf returns the resource of an object, and a copy of the object in the Go type in which
// the resource holds its objects. The warnings are about fields that this type does not have.
func (s *Server) resourceOf(obj runtime.Object) (r *resource, copied object, warnings []error, err error) {
	given, ok := obj.(object)
	if !ok {
		return nil, nil, nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not an API object", obj))
	}
	if r, err = s.resourceOfKind(given); err != nil {
		return nil, nil, nil, err
	}
	if _, isMap := obj.(*unstructured.Unstructured); r.typed && !isMap {
		return r, clone(given), nil, nil
	}
	data, err := json.Marshal(withKind(given, r.gvk()))
	if err != nil {
		return nil, nil, nil, errUnhandled(r.gvk(), err)
	}
	copied, warnings, err = decode(mediaJSON, data, r)
	return r, copied, warnings, err
}

func (s *Server) resourceOfKind(obj object) (*resource, error) {
	kinds := []schema.GroupVersionKind{obj.GetObjectKind().GroupVersionKind()}
	if kinds[0].Empty() {
		known, _, err := scheme.Scheme.ObjectKinds(obj)
		if err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("apisim: the kind of %T is not known: "+
				"set its apiVersion and kind", obj))
		}
		kinds = known
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if !r.isReview && slices.Contains(kinds, r.gvk()) {
			return r, nil
		}
	}
	return nil, apierrors.NewBadRequest(fmt.Sprintf("no resource serves the kind %s of %s: "+
		"create its CustomResourceDefinition, or register it with Server.Register",
		kinds[0].Kind, kinds[0].GroupVersion()))
}

// Create is [Server.Create] with the Go type of the object.
func Create[T runtime.Object](ctx context.Context, s *Server, obj T) (T, error) {
	made, err := s.Create(ctx, obj)
	return typed[T](made, err)
}

// Update is [Server.Update] with the Go type of the object.
func Update[T runtime.Object](ctx context.Context, s *Server, obj T) (T, error) {
	updated, err := s.Update(ctx, obj)
	return typed[T](updated, err)
}

// Delete is [Server.Delete] of the object with the kind, namespace and name of obj. It returns the
// last state.
func Delete[T runtime.Object](ctx context.Context, s *Server, obj T) (T, error) {
	r, given, _, err := s.resourceOf(obj)
	if err != nil {
		return *new(T), err
	}
	last, err := s.Delete(ctx, r.gvr(), given.GetNamespace(), given.GetName())
	return typed[T](last, err)
}

// Get is [Server.Get] for a Go type that client-go knows, such as *corev1.Pod. The type determines
// the resource.
func Get[T runtime.Object](ctx context.Context, s *Server, namespace, name string) (T, error) {
	of := reflect.TypeFor[T]()
	if of.Kind() == reflect.Pointer {
		if obj, ok := reflect.New(of.Elem()).Interface().(object); ok {
			if r, err := s.resourceOfKind(obj); err == nil {
				got, err := s.Get(ctx, r.gvr(), namespace, name)
				return typed[T](got, err)
			}
		}
	}
	return *new(T), fmt.Errorf(
		"apisim: Get knows no resource of %v: use Server.Get, which takes the resource", of)
}

// typed returns an object of the server as a T. The caller may have given it as a map, or as a Go
// type that client-go does not know.
func typed[T runtime.Object](obj runtime.Object, err error) (T, error) {
	if err != nil {
		return *new(T), err
	}
	if t, ok := obj.(T); ok {
		return t, nil
	}
	u, isMap := obj.(*unstructured.Unstructured)
	if !isMap {
		u = &unstructured.Unstructured{}
		if err := scheme.Scheme.Convert(obj, u, nil); err != nil {
			return *new(T), err
		}
	}
	if t, ok := runtime.Object(u).(T); ok {
		return t, nil
	}
	t := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return *new(T), err
	}
	return t, nil
}
