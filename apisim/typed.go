package apisim

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
)

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

// Get is [Server.Get] of a Go type that client-go knows, such as *corev1.Pod. The type
// decides the resource.
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

// typed returns an object of the server as a T, which may have been given as a map or as a
// Go type that client-go does not know.
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
