package informers

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// resource is a row of the generated table: what an informer has to know of a
// resource of Kubernetes' own API.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	goType     goType
	// open finds the resource in a client. The namespace is ignored by a resource
	// that has none.
	open func(c kubernetes.Interface, namespace string) listWatcher
}

// resourceOf returns the row of the type of obj.
func resourceOf(obj runtime.Object) (*resource, bool) {
	for i := range resources {
		if resources[i].goType.is(obj) {
			return &resources[i], true
		}
	}
	return nil, false
}

// resourceFor returns the row of a resource.
func resourceFor(gvr schema.GroupVersionResource) (*resource, bool) {
	for i := range resources {
		if resources[i].gvr == gvr {
			return &resources[i], true
		}
	}
	return nil, false
}

// goType is the Go type of a resource's objects.
type goType interface {
	// example returns a new, empty object.
	example() runtime.Object
	// is reports whether obj is of the type; it may be a nil pointer.
	is(obj runtime.Object) bool
	// typed gives an informer the methods of cache.TypedSharedIndexInformer, which
	// client-go's informers of a known type have.
	typed(informer cache.SharedIndexInformer) cache.SharedIndexInformer
}

// object is the goType of P, a pointer to T.
type object[T any, P interface {
	*T
	cache.Object
	runtime.Object
}] struct{}

func (object[T, P]) example() runtime.Object { return P(new(T)) }

func (object[T, P]) is(obj runtime.Object) bool {
	_, ok := obj.(P)
	return ok
}

func (object[T, P]) typed(informer cache.SharedIndexInformer) cache.SharedIndexInformer {
	return cache.NewTypedSharedIndexInformer[P](informer)
}

// listWatcher is a resource of a client, within a namespace.
type listWatcher interface {
	list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// lister has the two methods of a generated client that an informer needs. L is
// the type of its lists.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

// typed makes a listWatcher of a generated client.
func typed[L runtime.Object](client lister[L]) listWatcher {
	return typedListWatcher[L]{client}
}

type typedListWatcher[L runtime.Object] struct {
	client lister[L]
}

func (w typedListWatcher[L]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := w.client.List(ctx, o)
	if err != nil {
		// Not the list: a nil pointer in an interface is not nil.
		return nil, err
	}
	return list, nil
}

func (w typedListWatcher[L]) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return w.client.Watch(ctx, o)
}
