package informers

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/internal/listwatch"
)

// errNilClient is what an informer without a client fails with when it runs.
var errNilClient = errors.New("the Kubernetes client is nil: give NewSharedInformerFactory, NewFor or NewFilteredFor one made with kubernetes.NewForConfig")

// newInformer makes an informer over a source. It is the one place that does.
func newInformer(lw cache.ListerWatcher, example runtime.Object, o cache.SharedIndexInformerOptions) cache.SharedIndexInformer {
	return tidingscache.NewSharedIndexInformerWithOptions(lw, example, o)
}

// newInformer makes an informer of the resource, which no one shares yet. It has the
// typed methods too, because those of client-go's constructors have them.
func (r *resource) newInformer(client kubernetes.Interface, namespace string, o internalinterfaces.InformerOptions, decode decoding) cache.SharedIndexInformer {
	if !r.namespaced {
		namespace = metav1.NamespaceNone
	}
	options := cache.SharedIndexInformerOptions{
		ResyncPeriod: o.ResyncPeriod,
		Indexers:     o.Indexers,
		Identifier:   o.InformerName.WithResource(r.gvr),
	}
	if cs, ok := client.(*kubernetes.Clientset); ok && hasREST(cs) {
		if informer, ok := newRESTInformer(cs, *r, namespace, o.TweakListOptions, decode, options); ok {
			return r.goType.typed(informer)
		}
	}
	example := r.goType.example()
	cleared := listwatch.Clearing(r.listerWatcher(client, namespace, o.TweakListOptions), clearing(example, decode.drop))
	return r.goType.typed(newInformer(listwatch.WithSharing(cleared, decode.choice(r.source())), example, options))
}

// hasREST reports whether a clientset speaks HTTP. One that was made around a fake of
// rest.Interface does not.
func hasREST(cs *kubernetes.Clientset) bool {
	if cs == nil {
		return false
	}
	client, ok := cs.CoreV1().RESTClient().(*rest.RESTClient)
	return ok && client != nil
}

// listerWatcher reads the resource through the typed methods of a client, which it asks
// for them at each call, as fakes may change what they return.
func (r *resource) listerWatcher(client kubernetes.Interface, namespace string, tweak internalinterfaces.TweakListOptionsFunc) cache.ListerWatcher {
	list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if isNil(client) {
			return nil, errNilClient
		}
		if tweak != nil {
			tweak(&o)
		}
		return r.open(client, namespace).list(ctx, o)
	}
	open := func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		if isNil(client) {
			return nil, errNilClient
		}
		if tweak != nil {
			tweak(&o)
		}
		return r.open(client, namespace).watch(ctx, o)
	}
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc:  list,
		WatchFuncWithContext: open,
	}, client)
}

// isNil also knows the nil that a failed kubernetes.NewForConfig returns.
func isNil(client kubernetes.Interface) bool {
	cs, ok := client.(*kubernetes.Clientset)
	return client == nil || ok && cs == nil
}
