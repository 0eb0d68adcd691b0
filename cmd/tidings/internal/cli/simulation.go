package cli

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/cmd/tidings/internal/fleet"
	"github.com/tidings-go/tidings/internal/builtin"
)

// simulation is the API server of a demo, as the cluster of a fleet. The fleet writes
// past HTTP, so that what is measured is the informers' part; they read over HTTP.
type simulation struct {
	server *apisim.Server
	url    string
}

var _ fleet.Cluster = (*simulation)(nil)

func newSimulation() (*simulation, error) {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		return nil, err
	}
	url, err := server.Listen("127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the demo's API server cannot listen on a port of this machine: %w", err), server.Close())
	}
	return &simulation{server, url}, nil
}

// URL returns the address of the server.
func (s *simulation) URL() string { return s.url }

// Config returns what a client needs to reach the server over TCP.
func (s *simulation) Config() *rest.Config { return &rest.Config{Host: s.url, QPS: -1} }

// Close ends the server.
func (s *simulation) Close() error { return s.server.Close() }

// Create stores a new object.
func (s *simulation) Create(ctx context.Context, obj fleet.Object) (fleet.Object, error) {
	return stored(s.server.Create(ctx, obj))
}

// Update replaces an object.
func (s *simulation) Update(ctx context.Context, obj fleet.Object) (fleet.Object, error) {
	return stored(s.server.Update(ctx, obj))
}

// Delete removes an object.
func (s *simulation) Delete(ctx context.Context, obj fleet.Object) (fleet.Object, error) {
	resource, err := resourceOf(obj)
	if err != nil {
		return nil, err
	}
	return stored(s.server.Delete(ctx, resource.GVR(), obj.GetNamespace(), obj.GetName()))
}

// List returns the objects of a kind by namespace/name.
func (s *simulation) List(ctx context.Context, kind schema.GroupVersionKind) (map[string]tidings.Object, error) {
	resource, ok := builtin.ForGVK(kind)
	if !ok {
		return nil, fmt.Errorf("no resource serves %s", kind)
	}
	list, _, err := s.server.List(ctx, resource.GVR(), "")
	if err != nil {
		return nil, err
	}
	objects := make(map[string]tidings.Object, len(list))
	for _, item := range list {
		obj, err := stored(item, nil)
		if err != nil {
			return nil, err
		}
		key := obj.GetName()
		if namespace := obj.GetNamespace(); namespace != "" {
			key = namespace + "/" + key
		}
		objects[key] = obj
	}
	return objects, nil
}

func stored(obj runtime.Object, err error) (fleet.Object, error) {
	if err != nil {
		return nil, err
	}
	typed, ok := obj.(fleet.Object)
	if !ok {
		return nil, fmt.Errorf("the server holds a %T, which has no metadata", obj)
	}
	return typed, nil
}

// resourceOf returns the resource of a built-in type.
func resourceOf(obj runtime.Object) (builtin.Resource, error) {
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return builtin.Resource{}, err
	}
	resource, ok := builtin.ForGVK(kinds[0])
	if !ok {
		return resource, fmt.Errorf("no resource serves %s", kinds[0])
	}
	return resource, nil
}
