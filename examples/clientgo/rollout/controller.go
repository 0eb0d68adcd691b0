package rollout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	firstRetry = 10 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// Options are the choices of a [Controller]. The zero value is ready.
type Options struct {
	// Workers is how many deployments, and how many replica sets, are worked on at
	// a time; 0 means 2.
	Workers int
	// Report is told of every attempt that failed and is made again; nil leaves it.
	// Workers call it at once.
	Report func(error)
}

// Controller keeps deployments and replica sets. The zero value is not usable: New
// makes one, and Run ends the goroutines of its queues.
type Controller struct {
	client  kubernetes.Interface
	options Options

	deployments appslisters.DeploymentLister
	sets        appslisters.ReplicaSetLister
	pods        corelisters.PodLister
	synced      []cache.InformerSynced

	deploymentQueue, setQueue queue

	writes writes
}

// queue holds the keys that are to be worked on.
type queue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

// New returns a controller that writes through a client, and reads from the informers of
// a factory, which it asks for deployments, replica sets and pods. Where the factory
// looks is where the controller works. The caller starts the factory afterwards, and
// shuts it down when Run has returned.
func New(client kubernetes.Interface, factory informers.SharedInformerFactory, o Options) (*Controller, error) {
	if o.Workers < 0 {
		return nil, fmt.Errorf("rollout: %d workers: give none for the default, or at least one", o.Workers)
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	deployments, sets, pods := factory.Apps().V1().Deployments(), factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	c := &Controller{
		client: client, options: o,
		deployments: deployments.Lister(), sets: sets.Lister(), pods: pods.Lister(),
		deploymentQueue: newQueue("deployments"), setQueue: newQueue("replicasets"),
	}
	for informer, react := range map[cache.SharedIndexInformer]func(metav1.Object){
		deployments.Informer(): c.deploymentChanged,
		sets.Informer():        c.setChanged,
		pods.Informer():        c.podChanged,
	} {
		registration, err := informer.AddEventHandler(c.handler(react))
		if err != nil {
			c.deploymentQueue.ShutDown()
			c.setQueue.ShutDown()
			return nil, fmt.Errorf("rollout: follow the informers of the factory: %w", err)
		}
		c.synced = append(c.synced, registration.HasSynced)
	}
	return c, nil
}

func newQueue(name string) queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](firstRetry, lastRetry),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name})
}

// Run waits for the informers and then works until ctx ends. It returns when every
// goroutine of the controller has ended.
func (c *Controller) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	defer c.deploymentQueue.ShutDown()
	defer c.setQueue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), c.synced...) {
		return // ctx has ended
	}
	for range c.options.Workers {
		running.Go(func() { c.work(ctx, c.deploymentQueue, "deployment", c.reconcileDeployment) })
		running.Go(func() { c.work(ctx, c.setQueue, "replica set", c.reconcileSet) })
	}
	<-ctx.Done()
}

// work reconciles one key after the other until the queue is shut down.
func (c *Controller) work(ctx context.Context, q queue, kind string, reconcile func(context.Context, cache.ObjectName) error) {
	for {
		key, ended := q.Get()
		if ended {
			return
		}
		err := reconcile(ctx, key)
		switch {
		case err == nil:
			q.Forget(key)
		case errors.Is(err, context.Canceled) && ctx.Err() != nil:
			// It is told to stop.
		default:
			c.options.Report(fmt.Errorf("%s %v, to be tried again: %w", kind, key, err))
			q.AddRateLimited(key)
		}
		q.Done(key)
	}
}
