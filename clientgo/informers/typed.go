package informers

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Object is a pointer to a type of the Kubernetes API, such as *corev1.Pod.
type Object interface {
	cache.Object
	runtime.Object
}

// InformerOptions are the options of NewFor. The zero value is ready: no resyncs, no
// indexes, no name in metrics, everything selected. It is client-go's own type.
type InformerOptions = internalinterfaces.InformerOptions

// NewFor returns an informer of the objects of type T that is not shared, in place of
// client-go's per-type constructors NewPodInformerWithOptions, NewTypedPodInformerWithOptions
// and their like:
//
//	pods := informers.NewFor[*corev1.Pod](client, metav1.NamespaceAll, informers.InformerOptions{})
//
// The options are those of a factory, and have the informer share, drop fields or transform
// as that does; they apply after the parameters:
//
//	pods := informers.NewFor[*corev1.Pod](client, metav1.NamespaceAll, informers.InformerOptions{},
//		informers.WithDropFor[*corev1.Pod]("spec.containers.env"))
//
// The namespace is ignored for a type that has none. A factory's informers are
// preferable wherever they can be shared: each one of these has a watch and a cache of
// its own.
//
// It panics if T is no type for which client-go has an informer: T is fixed when the
// program is compiled, so that any run of that line shows the mistake. A nil client
// fails every list and watch with an error.
func NewFor[T Object](client kubernetes.Interface, namespace string, o InformerOptions, options ...SharedInformerOption) cache.TypedSharedIndexInformer[T] {
	var zero T
	r, ok := resourceOf(zero)
	if !ok {
		panic(fmt.Sprintf("informers.NewFor: client-go has no informer for %T: take a pointer to a type of k8s.io/api such as *corev1.Pod; "+
			"for a custom resource use ForGroup or tidings.For", zero))
	}
	f := newFactory(client, o.ResyncPeriod, slices.Concat([]SharedInformerOption{
		WithNamespace(namespace), WithTweakListOptions(o.TweakListOptions), WithInformerName(o.InformerName),
	}, options))
	return cache.NewTypedSharedIndexInformer[T](f.own(r, o.Indexers))
}

// NewFilteredFor is NewFor with the parameters and the result of client-go's
// NewFilteredPodInformer and its like. resync is the period of resyncs, zero for none;
// indexers and tweak may be nil. For options, such as WithDropFor, there is NewFor.
func NewFilteredFor[T Object](client kubernetes.Interface, namespace string, resync time.Duration, indexers cache.Indexers, tweak internalinterfaces.TweakListOptionsFunc) cache.SharedIndexInformer {
	return NewFor[T](client, namespace, InformerOptions{ResyncPeriod: resync, Indexers: indexers, TweakListOptions: tweak})
}
