package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	ourdynamic "github.com/tidings-go/tidings/clientgo/dynamicinformer"
	ours "github.com/tidings-go/tidings/clientgo/informers"
	ourmetadata "github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// Informers make the factories that a cluster runs on.
type Informers struct {
	// Shared and Metadata are those of the controllers.
	Shared func(kubernetes.Interface, time.Duration,
		cache.TransformFunc) informers.SharedInformerFactory
	Metadata func(metadata.Interface, time.Duration,
		cache.TransformFunc) metadatainformer.SharedInformerFactory
	// Plain and Dynamic are those of the scheduler, Pods its informer of pods.
	Plain   func(kubernetes.Interface, time.Duration) informers.SharedInformerFactory
	Dynamic func(dynamic.Interface, time.Duration) dynamicinformer.DynamicSharedInformerFactory
	Pods    func(kubernetes.Interface, time.Duration,
		func(*metav1.ListOptions)) cache.SharedIndexInformer
}

// Tidings are the informers of this project's drop-ins.
func Tidings() Informers {
	return Informers{
		Shared: func(c kubernetes.Interface, resync time.Duration,
			transform cache.TransformFunc) informers.SharedInformerFactory {
			return ours.NewSharedInformerFactoryWithOptions(c, resync, ours.WithTransform(transform))
		},
		Metadata: func(c metadata.Interface, resync time.Duration,
			transform cache.TransformFunc) metadatainformer.SharedInformerFactory {
			return ourmetadata.NewSharedInformerFactoryWithOptions(c, resync,
				ourmetadata.WithTransform(transform))
		},
		Plain:   ours.NewSharedInformerFactory,
		Dynamic: ourdynamic.NewDynamicSharedInformerFactory,
		Pods: func(c kubernetes.Interface, resync time.Duration,
			tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
			return ours.NewFilteredFor[*corev1.Pod](c, metav1.NamespaceAll, resync, cache.Indexers{}, tweak)
		},
	}
}

// ClientGo are client-go's informers.
func ClientGo() Informers {
	return Informers{
		Shared: func(c kubernetes.Interface, resync time.Duration,
			transform cache.TransformFunc) informers.SharedInformerFactory {
			return informers.NewSharedInformerFactoryWithOptions(c, resync,
				informers.WithTransform(transform))
		},
		Metadata: func(c metadata.Interface, resync time.Duration,
			transform cache.TransformFunc) metadatainformer.SharedInformerFactory {
			return metadatainformer.NewSharedInformerFactoryWithOptions(c, resync,
				metadatainformer.WithTransform(transform))
		},
		Plain:   informers.NewSharedInformerFactory,
		Dynamic: dynamicinformer.NewDynamicSharedInformerFactory,
		Pods: func(c kubernetes.Interface, resync time.Duration,
			tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
			return coreinformers.NewFilteredPodInformer(c, metav1.NamespaceAll, resync, cache.Indexers{},
				tweak)
		},
	}
}

// unfinished are the pods that the scheduler's informer has.
var unfinished = fields.AndSelectors(
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
	fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
).String()

// forScheduler returns the scheduler's factory, whose informer of pods has a selector
// and a transform of its own.
func (i Informers) forScheduler(
	client kubernetes.Interface,
) (informers.SharedInformerFactory, error) {
	factory := i.Plain(client, 0)
	var err error
	factory.InformerFor(&corev1.Pod{}, func(c kubernetes.Interface,
		resync time.Duration) cache.SharedIndexInformer {
		informer := i.Pods(c, resync, func(o *metav1.ListOptions) { o.FieldSelector = unfinished })
		err = informer.SetTransform(dropManagedFields)
		return informer
	})
	return factory, err
}

// dropManagedFields is the transform of the controllers and of the scheduler.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil { // a tombstone has nothing to drop
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
