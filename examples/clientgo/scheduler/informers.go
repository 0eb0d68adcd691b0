package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
)

// byNode is the index of pods by the node they are on; those without one have "".
const byNode = "spec.nodeName"

// newFactory returns a factory whose shared informer of pods is newUnfinishedPods'.
func newFactory(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(client, resync)
	factory.InformerFor(&corev1.Pod{}, newUnfinishedPods)
	return factory
}

// newUnfinishedPods returns an informer of the pods that still take up room. The
// server leaves the others out: a pod that finishes is deleted as far as this
// informer is concerned.
func newUnfinishedPods(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
	unfinished := fields.AndSelectors(
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodSucceeded)),
		fields.OneTermNotEqualSelector("status.phase", string(corev1.PodFailed)),
	).String()
	informer := newPods(client, metav1.NamespaceAll, resync, cache.Indexers{byNode: nodeOf},
		func(options *metav1.ListOptions) { options.FieldSelector = unfinished })
	// It fails only for an informer that runs already.
	if err := informer.SetTransform(dropManagedFields); err != nil {
		panic(fmt.Sprintf("a new informer takes no transform: %v", err))
	}
	return informer
}

// nodeOf is the index function of byNode.
func nodeOf(obj any) ([]string, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is not a pod", obj)
	}
	return []string{pod.Spec.NodeName}, nil
}

// dropManagedFields removes fields that no scheduler reads, often a third of an object.
func dropManagedFields(obj any) (any, error) {
	if accessor, err := meta.Accessor(obj); err == nil { // a tombstone has nothing to drop
		accessor.SetManagedFields(nil)
	}
	return obj, nil
}
