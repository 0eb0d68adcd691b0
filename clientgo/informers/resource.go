package informers

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/factory"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
	"github.com/tidings-go/tidings/source"
)

// resource is a row of the generated table: a resource of Kubernetes' own API.
type resource struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	goType     goType
	// open finds the resource in a client. A resource without a namespace ignores it.
	open func(c kubernetes.Interface, namespace string) listwatch.Client
}

func resourceOf(obj runtime.Object) (*resource, bool) {
	return rowWith(func(r *resource) bool { return r.goType.is(obj) })
}

func resourceFor(gvr schema.GroupVersionResource) (*resource, bool) {
	return rowWith(func(r *resource) bool { return r.gvr == gvr })
}

func rowWith(match func(*resource) bool) (*resource, bool) {
	for i := range resources {
		if match(&resources[i]) {
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
	// typed adds the methods of cache.TypedSharedIndexInformer, which client-go's informers of
	// a known type have.
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

// errNilClient is the error of every list and watch without a client.
var errNilClient = errors.New("the Kubernetes client is nil: give NewSharedInformerFactory, NewFor or NewFilteredFor one made with kubernetes.NewForConfig")

func (r *resource) newInformer(client kubernetes.Interface,
	s factory.Spec) cache.SharedIndexInformer {
	s.Resource = source.Resource{
		Group: r.gvr.Group, Version: r.gvr.Version, Name: r.gvr.Resource,
		Kind: r.kind, Scope: scopeOf(r.namespaced),
	}
	if !r.namespaced {
		s.Namespace = metav1.NamespaceNone
	}
	own, why := r.ownSource(client)
	if own != nil {
		openTyped(&s, own, r.goType.example)
	} else {
		s.Informer.Fallback = why
		s.ListWatch = r.listerWatcher(client, s)
	}
	return r.goType.typed(factory.New(s))
}

// ownSource returns the REST client of a clientset for our own source. For any other client it
// returns nil and why: fakes, wrappers, nil, and a clientset around a fake of rest.Interface.
func (r *resource) ownSource(client kubernetes.Interface) (own *source.Client, why string) {
	cs, ok := client.(*kubernetes.Clientset)
	if !ok || cs == nil {
		return nil, fmt.Sprintf("the client is a %T, not one of kubernetes.NewForConfig", client)
	}
	of := cs.CoreV1().RESTClient()
	restClient, ok := of.(*rest.RESTClient)
	if !ok || restClient == nil {
		return nil, fmt.Sprintf("the REST client of the client is a %T", of)
	}
	own, err := source.NewClientFromREST(restClient)
	if err != nil {
		utilruntime.HandleErrorWithContext(context.Background(), err,
			"An informer reads through typed clients, because it cannot use the REST client",
			"resource", r.gvr.String())
		return nil, err.Error()
	}
	return own, ""
}

// openTyped makes an informer read with our own source.
func openTyped(s *factory.Spec, own *source.Client, example func() runtime.Object) {
	of, newObject := s.Resource, func() source.Object { return example().(source.Object) }
	s.Open = func(o source.RESTOptions) source.Source[any] {
		return listwatch.Untyped[source.Object](source.NewTyped(own, of, newObject, o), nil)
	}
}

// listerWatcher reads through the typed methods of a client, which it requests for each call,
// because fakes may change their results.
func (r *resource) listerWatcher(client kubernetes.Interface, s factory.Spec) cache.ListerWatcher {
	return listwatch.FromClient(client, func() (listwatch.Client, error) {
		if factory.IsNil(client) {
			return nil, errNilClient
		}
		return r.open(client, s.Namespace), nil
	}, s.Tweak)
}

func scopeOf(namespaced bool) source.Scope {
	if namespaced {
		return source.ScopeNamespaced
	}
	return source.ScopeCluster
}
