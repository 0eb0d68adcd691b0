package informers

import (
	"fmt"
	"reflect"
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
// indexes, no name in metrics, no selection. It is client-go's own type.
type InformerOptions = internalinterfaces.InformerOptions

// NewFor returns an informer of the objects of type T that is not shared, in place of
// client-go's per-type constructors NewPodInformerWithOptions, NewTypedPodInformerWithOptions
// and their like:
//
//	pods := informers.NewFor[*corev1.Pod](client, metav1.NamespaceAll, informers.InformerOptions{})
//
// The options are those of a factory; they apply after the parameters:
//
//	pods := informers.NewFor[*corev1.Pod](client, metav1.NamespaceAll, informers.InformerOptions{},
//		informers.WithDropFor[*corev1.Pod]("spec.containers.env"))
//
// The namespace is ignored for a type without namespaces. Prefer the informers of a factory
// wherever they can be shared: each informer of NewFor has its own watch and cache.
//
// It panics if client-go has no informer for T: T is fixed at compile time, so that any run
// of that line shows the mistake. With a nil client every list and watch fails.
func NewFor[T Object](client kubernetes.Interface, namespace string, o InformerOptions,
	options ...SharedInformerOption) cache.TypedSharedIndexInformer[T] {
	var zero T
	r, ok := resourceOf(zero)
	if !ok {
		panic(fmt.Sprintf("informers.NewFor: client-go has no informer for %T: take a pointer to a type of k8s.io/api such as *corev1.Pod; "+
			"for a custom resource use ForGroup or tidings.For", zero))
	}
	f := newFactory(client, o.ResyncPeriod, slices.Concat([]SharedInformerOption{
		WithNamespace(namespace), WithTweakListOptions(o.TweakListOptions),
		WithInformerName(o.InformerName),
	}, options))
	return cache.NewTypedSharedIndexInformer[T](f.newInformer(reflect.TypeFor[T](),
		f.newFunc(r, o.Indexers)))
}

// NewFilteredFor is NewFor with the parameters and the result of client-go's
// NewFilteredPodInformer and its like. resync is the period of resyncs, zero for none;
// indexers and tweak may be nil.
func NewFilteredFor[T Object](client kubernetes.Interface, namespace string, resync time.Duration,
	indexers cache.Indexers, tweak internalinterfaces.TweakListOptionsFunc) cache.SharedIndexInformer {
	return NewFor[T](client, namespace, InformerOptions{ResyncPeriod: resync, Indexers: indexers,
		TweakListOptions: tweak})
}
