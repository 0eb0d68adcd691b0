package loop

import (
	"context"
	"log"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// Loop is a controller. Make it with [New]. Its work queue holds keys, never objects: a key that
// waits stands for everything that happens to its object meanwhile.
type Loop struct {
	// Filled is called when the caches are filled, before the first key is taken; nil is nothing.
	Filled func()

	reconcile func(context.Context, cache.ObjectName) error
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced    []cache.InformerSynced
	retries   int // after which a key is dropped until something happens to it
	out       *log.Logger
}

// New returns a loop that does not run yet.
func New(retries int, out *log.Logger,
	reconcile func(context.Context, cache.ObjectName) error) *Loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](
		10*time.Millisecond, time.Minute)
	return &Loop{
		reconcile: reconcile, queue: workqueue.NewTypedRateLimitingQueue(limiter),
		retries: retries, out: out,
	}
}

// Await makes Run wait for a cache that the loop reads without following it.
func (l *Loop) Await(synced cache.InformerSynced) { l.synced = append(l.synced, synced) }

// Follow calls react for every event of an informer, with the object or, when its last state is
// unknown, with its tombstone.
func (l *Loop) Follow(informer cache.SharedIndexInformer, react func(obj any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    react,
		UpdateFunc: func(_, changed any) { react(changed) },
		DeleteFunc: react,
	})
	if err != nil {
		return err
	}
	l.Await(registration.HasSynced)
	return nil
}

// Enqueue puts the key of an object, or of its tombstone, into the queue.
func (l *Loop) Enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		l.out.Printf("an event without a key: %v", err)
		return
	}
	l.Add(key)
}

// Add puts a key into the queue.
func (l *Loop) Add(key cache.ObjectName) { l.queue.Add(key) }

// Run works until ctx ends and every worker has finished its key.
func (l *Loop) Run(ctx context.Context, workers int) {
	var working sync.WaitGroup
	defer working.Wait()
	defer l.queue.ShutDown()
	if !cache.WaitForCacheSync(ctx.Done(), l.synced...) {
		return
	}
	if l.Filled != nil {
		l.Filled()
	}
	for range workers {
		working.Go(func() {
			for l.next(ctx) {
			}
		})
	}
	<-ctx.Done()
}

// next works on one key and reports false when the queue was shut down.
func (l *Loop) next(ctx context.Context) bool {
	key, down := l.queue.Get()
	if down {
		return false
	}
	defer l.queue.Done(key)
	err := l.reconcile(ctx, key)
	switch {
	case err == nil || ctx.Err() != nil:
		l.queue.Forget(key) // the next failure starts with a short wait again
	case apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err):
		// The cache is a moment behind the server; nothing is wrong.
		l.queue.AddRateLimited(key)
	case l.queue.NumRequeues(key) < l.retries:
		l.out.Printf("%v: %v; trying again", key, err)
		l.queue.AddRateLimited(key)
	default:
		l.out.Printf("%v: %v; giving up until it changes", key, err)
		l.queue.Forget(key)
	}
	return true
}
