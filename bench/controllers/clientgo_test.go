package controllers

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/util/workqueue"
)

// clientGoProgram is a program of client-go's parts, as the controllers of
// kube-controller-manager are.
type clientGoProgram struct {
	program
	client kubernetes.Interface
	lister listers.DeploymentLister
	queue  workqueue.TypedRateLimitingInterface[string]
}

// clientGoMain runs one. Its informer runs before the election, its workers within.
func clientGoMain(ctx context.Context, config *rest.Config, p program) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	deployments := factory.Apps().V1().Deployments()
	limiter := workqueue.DefaultTypedControllerRateLimiter[string]()
	run := &clientGoProgram{
		program: p, client: client, lister: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(limiter),
	}
	defer run.queue.ShutDown()
	enqueue := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			run.queue.Add(key)
		}
	}
	_, err = deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, o any) { enqueue(o) }, DeleteFunc: enqueue,
	})
	if err != nil {
		return err
	}
	informing, stopInforming := context.WithCancel(context.WithoutCancel(ctx))
	defer factory.Shutdown()
	defer stopInforming()
	factory.StartWithContext(informing)
	if !cache.WaitForCacheSync(ctx.Done(), deployments.Informer().HasSynced) {
		return context.Cause(ctx)
	}
	if !p.elected {
		run.work(ctx)
		return nil
	}
	return run.elect(ctx, config)
}

// elect takes part in an election and works while it leads. Losing the lease ends the program at
// once; stopping it waits for its workers.
func (p *clientGoProgram) elect(ctx context.Context, config *rest.Config) error {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, opsNamespace,
		leaseName, resourcelock.ResourceLockConfig{Identity: p.name}, config, 10*time.Second)
	if err != nil {
		return err
	}
	var workers sync.WaitGroup
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: p.releases,
		LeaseDuration: leaseDuration, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { workers.Go(func() { p.work(ctx) }) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return err
	}
	elector.Run(ctx)
	if ctx.Err() != nil {
		workers.Wait()
	}
	return nil
}

// work runs the workers until ctx ends, and waits for them.
func (p *clientGoProgram) work(ctx context.Context) {
	var workers sync.WaitGroup
	for range p.workers {
		workers.Go(func() {
			for p.next(ctx) {
			}
		})
	}
	<-ctx.Done()
	p.queue.ShutDown()
	workers.Wait()
}

func (p *clientGoProgram) next(ctx context.Context) bool {
	key, shutdown := p.queue.Get()
	if shutdown {
		return false
	}
	defer p.queue.Done(key)
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return true
	}
	var d *appsv1.Deployment
	if cached, err := p.lister.Deployments(namespace).Get(name); err == nil {
		d = cached.DeepCopy()
	}
	after, err := p.call(ctx, key, d, typedClient{p.client})
	switch {
	case err != nil:
		p.queue.AddRateLimited(key)
	case after > 0:
		p.queue.Forget(key)
		p.queue.AddAfter(key, after)
	default:
		p.queue.Forget(key)
	}
	return true
}
