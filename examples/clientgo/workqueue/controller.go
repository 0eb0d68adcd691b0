package main

import (
	"log"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/clientgo/loop"
)

// controller keeps the image lists of deployments right.
type controller struct {
	*loop.Loop  // over the keys of deployments
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	lists       corelisters.ConfigMapLister
	out         *log.Logger
}

// newController registers the handlers; the caller starts the informers.
func newController(client kubernetes.Interface, factory informers.SharedInformerFactory,
	retries int, out *log.Logger) (*controller, error) {
	deployments, lists := factory.Apps().V1().Deployments(), factory.Core().V1().ConfigMaps()
	c := &controller{client: client, deployments: deployments.Lister(), lists: lists.Lister(), out: out}
	c.Loop = loop.New(retries, out, c.reconcile)
	c.Filled = func() { out.Print("the caches are filled") }
	if err := c.Follow(deployments.Informer(), c.Enqueue); err != nil {
		return nil, err
	}
	// An image list that another client has changed or deleted concerns its deployment.
	return c, c.Follow(lists.Informer(), c.enqueueOwner)
}

// enqueueOwner puts the deployment of an image list, or of its tombstone, into the queue.
func (c *controller) enqueueOwner(obj any) {
	if list, ok := obj.(*corev1.ConfigMap); ok && !isImageList(list) {
		return // somebody else's
	}
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		c.out.Printf("an event without a key: %v", err)
		return
	}
	if owner, ok := strings.CutSuffix(key.Name, listSuffix); ok {
		c.Add(cache.NewObjectName(key.Namespace, owner))
	}
}
