package tidings

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/internal/see/inspect"
	"github.com/tidings-go/tidings/source"
)

// Inspect returns what other packages of this module need of the factory.
func (f *Factory) Inspect() inspect.Factory { return factoryInspection{f} }

// factoryInspection is an inspect.Factory.
type factoryInspection struct{ *Factory }

func (f factoryInspection) Served(ctx context.Context, gvr schema.GroupVersionResource) error {
	_, err := f.client.Resolve(ctx, source.Resource{
		Group: gvr.Group, Version: gvr.Version, Name: gvr.Resource,
	})
	return err
}

func (f factoryInspection) Hold() (release func() (last bool)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.managers++
	return func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.managers--
		return f.managers == 0
	}
}

func (f factoryInspection) Views() []inspect.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	views := make([]inspect.View, len(f.order))
	for i, s := range f.order {
		views[i] = s.collection.view()
	}
	return views
}

func (c *collection[T]) view() inspect.View { return inspection[T]{c} }

// Inspect returns what other packages of this module need of the informer. The error is
// ErrReleased.
func (i *Informer[T]) Inspect() (inspect.Informer, error) {
	if i == nil {
		return nil, fmt.Errorf("tidings: the informer is nil: ask a factory for one")
	}
	c, err := i.held()
	return inspection[T]{c}, err
}

// inspection is an inspect.Informer.
type inspection[T Object] struct{ *collection[T] }

func (i inspection[T]) IsWhole() bool {
	var none T
	_, isMetadata := any(none).(*metav1.PartialObjectMetadata)
	return i.declares == nil && !isMetadata
}

func (i inspection[T]) Server() string {
	if i.o.client == nil {
		return ""
	}
	return i.o.client.Server()
}

func (i inspection[T]) Resource() source.Resource {
	if r, ok := i.Collection.Resource(); ok {
		return r
	}
	return i.o.resource
}

func (i inspection[T]) Resolve(ctx context.Context) (source.Resource, error) {
	known := i.o.resource
	// A scope that is known is one of a built-in type, whose name and kind are known as well.
	if i.o.client == nil || known.Scope != source.ScopeUnknown {
		return known, nil
	}
	return i.o.client.Resolve(ctx, known)
}

func (i inspection[T]) Selects() bool {
	s := i.o.selection
	return !s.labels.Empty() || !s.fields.Empty()
}

func (i inspection[T]) Selectors() (labels, fields string) {
	return i.o.selection.labels.String(), i.o.selection.fields.String()
}

func (i inspection[T]) Slots() *Slots { return i.o.selection.slots }

func (i inspection[T]) Holds(uid, namespace string) bool {
	slots := i.o.selection.slots
	return slots == nil || slots.Has(uid, namespace)
}

func (i inspection[T]) Cached(key string) (version, uid string, ok bool) {
	obj, ok := i.Store().Get(key)
	if !ok {
		return "", "", false
	}
	version, uid = describe(obj)
	return version, uid, true
}

func (i inspection[T]) Received(key string) (version, uid string, ok bool) {
	if version, uid, ok = i.Undecodable(key); ok {
		return version, uid, true
	}
	return i.Cached(key)
}

func (i inspection[T]) Version() string { return i.Store().Snapshot().Version() }
