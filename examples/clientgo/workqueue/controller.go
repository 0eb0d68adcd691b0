package main

import (
	"context"
	"errors"
	"log"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/clientgo/informers"
)

// controller keeps the image lists of deployments right. Its work queue holds keys of
// deployments, never objects: a key that waits stands for everything that happens to
// its deployment and its image list meanwhile.
type controller struct {
	client      kubernetes.Interface
	deployments appslisters.DeploymentLister
	lists       corelisters.ConfigMapLister
	synced      []cache.InformerSynced
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	retries     int // after which a key is dropped until something happens to it
	out         *log.Logger
}

// newController registers the handlers; the caller starts the informers.
func newController(client kubernetes.Interface, factory informers.SharedInformerFactory,
	retries int, out *log.Logger) (*controller, error) {
	deployments, lists := factory.Apps().V1().Deployments(), factory.Core().V1().ConfigMaps()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
		10*time.Millisecond, time.Minute)
	c := &controller{
		client: client, deployments: deployments.Lister(), lists: lists.Lister(),
		queue:   workqueue.NewTypedRateLimitingQueue(limiter),
		retries: retries, out: out,
	}
	// An image list that another client has changed or deleted concerns its deployment.
	for informer, react := range map[cache.SharedIndexInformer]func(any){
		deployments.Informer(): c.enqueue, lists.Informer(): c.enqueueOwner,
	} {
		registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    react,
			UpdateFunc: func(_, changed any) { react(changed) },
			DeleteFunc: react,
		})
		if err != nil {
			return nil, err
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

// run works until ctx ends and every worker has finished its key.
func (c *controller) run(ctx context.Context, workers int) error {
	var working sync.WaitGroup
	defer working.Wait()
	defer c.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return errors.New("stopped before the caches were filled")
	}
	c.out.Printf("the caches are filled")
	for range workers {
		working.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	c.out.Printf("stopping")
	return nil
}

// next works on one key and reports false when the queue was shut down.
func (c *controller) next(ctx context.Context) bool {
	key, down := c.queue.Get()
	if down {
		return false
	}
	defer c.queue.Done(key)
	err := c.reconcile(ctx, key)
	switch {
	case err == nil || ctx.Err() != nil:
		c.queue.Forget(key) // the next failure starts with a short wait again
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		// The cache is a moment behind the server; nothing is wrong.
		c.queue.AddRateLimited(key)
	case c.queue.NumRequeues(key) < c.retries:
		c.out.Printf("%v: %v; trying again", key, err)
		c.queue.AddRateLimited(key)
	default:
		c.out.Printf("%v: %v; giving up until it changes", key, err)
		c.queue.Forget(key)
	}
	return true
}

// enqueue puts the key of a deployment, or of its tombstone, into the queue.
func (c *controller) enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		c.out.Printf("an event without a key: %v", err)
		return
	}
	c.queue.Add(key)
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
		c.queue.Add(cache.NewObjectName(key.Namespace, owner))
	}
}
