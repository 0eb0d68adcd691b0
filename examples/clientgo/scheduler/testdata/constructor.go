package main

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// newPods calls the constructor that client-go has for this type.
func newPods(client kubernetes.Interface, namespace string, resync time.Duration, indexers cache.Indexers, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
	return coreinformers.NewFilteredPodInformer(client, namespace, resync, indexers, tweak)
}
