package main

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
)

// newPods makes an informer of pods that no factory knows. In client-go its name would
// be that of the type, NewFilteredPodInformer: all else is the same.
func newPods(client kubernetes.Interface, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
	return informers.NewFilteredFor[*corev1.Pod](client, namespace, resync, indexers, tweak)
}
