package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	at     address
	gate   gate
}

var _ fleet.Cluster = (*simulation)(nil)

// bookmarkEvery is how often the watches of a demo are told the newest version: the last
// comparison waits for that.
const bookmarkEvery = time.Second

func newSimulation(address string) (*simulation, error) {
	s := &simulation{}
	var err error
	s.server, err = apisim.New(apisim.Options{BookmarkInterval: bookmarkEvery, Middleware: s.gate.wrap})
	if err != nil {
		return nil, err
	}
	if s.at, err = listen(s.server, address); err != nil {
		return nil, errors.Join(err, s.server.Close())
	}
	return s, nil
}

// URL returns the address at which this machine reaches the server.
func (s *simulation) URL() string { return s.at.here }

// Config returns what a client needs to reach the server over TCP.
func (s *simulation) Config() *rest.Config { return &rest.Config{Host: s.at.here, QPS: -1} }

// Close ends the server.
func (s *simulation) Close() error { return s.server.Close() }

// Get returns the newest state of an object.
func (s *simulation) Get(ctx context.Context, obj fleet.Object) (fleet.Object, error) {
	resource, err := resourceOf(obj)
	if err != nil {
		return nil, err
	}
	return stored(s.server.Get(ctx, resource, obj.GetNamespace(), obj.GetName()))
}

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
	return stored(s.server.Delete(ctx, resource, obj.GetNamespace(), obj.GetName()))
}

// List returns the objects of a resource by namespace/name, and the version that they are
// the state of.
func (s *simulation) List(ctx context.Context, resource schema.GroupVersionResource) (map[string]tidings.Object, string, error) {
	list, version, err := s.server.List(ctx, resource, "")
	if err != nil {
		return nil, "", err
	}
	objects := make(map[string]tidings.Object, len(list))
	for _, item := range list {
		obj, err := stored(item, nil)
		if err != nil {
			return nil, "", err
		}
		key := obj.GetName()
		if namespace := obj.GetNamespace(); namespace != "" {
			key = namespace + "/" + key
		}
		objects[key] = obj
	}
	return objects, version, nil
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

// resourceOf returns the resource of an object of a fleet.
func resourceOf(obj runtime.Object) (schema.GroupVersionResource, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind()) // the fleet's are regular
		return resource, nil
	}
	kinds, _, err := scheme.Scheme.ObjectKinds(obj)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	resource, ok := builtin.ForGVK(kinds[0])
	if !ok {
		return schema.GroupVersionResource{}, fmt.Errorf("no resource serves %s", kinds[0])
	}
	return resource.GVR(), nil
}
