package apisim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Create adds an object, status included, and returns it as it is stored: it must
// not be changed. Its errors are those that a client would get.
func (s *Server) Create(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	r, given, err := s.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	return direct(s.create(r, given, writing{part: wholeObject}))
}

// Update replaces an object, status included, and returns it as it is stored. If the
// object has a resource version, it must be the present one.
func (s *Server) Update(_ context.Context, obj runtime.Object) (runtime.Object, error) {
	r, given, err := s.resourceOf(obj)
	if err != nil {
		return nil, err
	}
	stored, _, err := s.update(r, given, writing{part: wholeObject})
	return direct(stored, err)
}

// Delete deletes an object as a client does that gives it no time, and returns its last
// state, with the version of the deletion. An object with finalizers is marked, and so
// returned; it goes with the update that takes the last of them.
func (s *Server) Delete(_ context.Context, gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, err
	}
	obj, _, err := s.delete(r, namespace, name, metav1.NewDeleteOptions(0))
	return direct(obj, err)
}

// Expire deletes objects as a server does whose storage lets them expire together, such as
// events of one minute: all these deletes have one resource version. A watch that is cut
// between two of them and resumed from that version does not get the others
// (kubernetes/kubernetes#110210). Neither finalizers nor grace periods hold them up.
func (s *Server) Expire(_ context.Context, gvr schema.GroupVersionResource, namespace string, names ...string) error {
	r, err := s.find(gvr)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	expired := make([]object, len(names))
	for i, name := range names {
		if expired[i], err = r.getLocked(namespace, name); err != nil {
			return err
		}
	}
	s.advanceLocked()
	for i, name := range names {
		s.storeLocked(r, keyOf(namespace, name), expired[i], nil)
	}
	return nil
}

// Get returns a stored object, which must not be changed.
func (s *Server) Get(_ context.Context, gvr schema.GroupVersionResource, namespace, name string) (runtime.Object, error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, err
	}
	return direct(s.get(r, namespace, name))
}

// List returns the stored objects of a namespace, "" being all, by namespace and
// name, and the version that they are the state of. They must not be changed.
func (s *Server) List(_ context.Context, gvr schema.GroupVersionResource, namespace string) (objects []runtime.Object, version string, err error) {
	r, err := s.find(gvr)
	if err != nil {
		return nil, "", err
	}
	s.mu.Lock()
	state, at := r.objects.Copy(), s.version
	s.mu.Unlock()
	prefix := selection{namespace: namespace}.prefix()
	state.Ascend(prefix, func(key string, obj object) bool {
		if !strings.HasPrefix(key, prefix) {
			return false
		}
		objects = append(objects, obj)
		return true
	})
	return objects, versionString(at), nil
}

// direct keeps a nil object from becoming an interface that is not nil.
func direct(obj object, err error) (runtime.Object, error) {
	if err != nil {
		return nil, err
	}
	return obj, nil
}

// find returns a resource that is served.
func (s *Server) find(gvr schema.GroupVersionResource) (*resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := s.resources[gvr]
	if !ok || r.removed {
		return nil, errNoResource()
	}
	return r, nil
}

// resourceOf returns the resource that an object belongs to, and the object in the Go
// type in which that holds its objects.
func (s *Server) resourceOf(obj runtime.Object) (*resource, object, error) {
	given, ok := obj.(object)
	if !ok {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("a %T is not an API object", obj))
	}
	kinds := []schema.GroupVersionKind{given.GetObjectKind().GroupVersionKind()}
	if kinds[0].Empty() {
		known, _, err := s.o.Scheme.ObjectKinds(obj)
		if err != nil {
			return nil, nil, apierrors.NewBadRequest(err.Error())
		}
		kinds = known
	}
	r := s.ofKind(kinds)
	if r == nil {
		var names []string
		for _, kind := range kinds {
			names = append(names, kind.Kind+" of "+kind.GroupVersion().String())
		}
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("no resource serves the kind %s: create its CustomResourceDefinition, or register it with Server.Register", strings.Join(names, " or ")))
	}
	_, isMap := obj.(*unstructured.Unstructured)
	if isMap != r.typed {
		return r, given, nil
	}
	converted, err := s.convert(r, obj)
	return r, converted, err
}

func (s *Server) ofKind(kinds []schema.GroupVersionKind) *resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.resources {
		if !r.removed && slices.Contains(kinds, r.gvk()) {
			return r
		}
	}
	return nil
}

// convert makes a map of a Go type, or the other way round.
func (s *Server) convert(r *resource, obj runtime.Object) (object, error) {
	if !r.typed {
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return nil, errUnhandled(r.gvk(), err)
		}
		u := &unstructured.Unstructured{Object: fields}
		u.SetGroupVersionKind(r.gvk())
		return u, nil
	}
	typed, err := s.o.Scheme.New(r.gvk())
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(obj.(*unstructured.Unstructured).Object, typed)
	}
	if err != nil {
		return nil, errUnhandled(r.gvk(), err)
	}
	return typed.(object), nil
}

func (s *Server) createNamespaces(names ...string) error {
	for _, name := range names {
		if _, err := s.Create(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			return err
		}
	}
	return nil
}
