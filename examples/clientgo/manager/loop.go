package main

import (
	"context"
	"log"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// loop is the part that all controllers have in common: a queue of keys, and workers that
// reconcile the objects of these keys.
type loop struct {
	name      string
	reconcile func(context.Context, cache.ObjectName) error
	queue     workqueue.TypedRateLimitingInterface[cache.ObjectName]
	synced    []cache.InformerSynced
	out       *log.Logger
}

func newLoop(name string, out *log.Logger, reconcile func(context.Context, cache.ObjectName) error) *loop {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Minute)
	return &loop{
		name:      name,
		reconcile: reconcile,
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: name}),
		out: out,
	}
}

// follow calls react for every event of an informer, with the object or, when its
// last state is unknown, with its tombstone.
func (l *loop) follow(informer cache.SharedIndexInformer, react func(obj any)) error {
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    react,
		UpdateFunc: func(_, changed any) { react(changed) },
		DeleteFunc: react,
	})
	if err != nil {
		return err
	}
	l.synced = append(l.synced, registration.HasSynced)
	return nil
}

// enqueue puts the key of an object or a tombstone into the queue.
func (l *loop) enqueue(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		l.out.Printf("%s: an event without a key: %v", l.name, err)
		return
	}
	l.queue.Add(key)
}

// start lets workers work until ctx ends.
func (l *loop) start(ctx context.Context, m manager) {
	m.running.Go(func() {
		defer l.queue.ShutDown()
		if !cache.WaitForCacheSync(ctx.Done(), l.synced...) {
			return
		}
		for range m.workers {
			m.running.Go(func() {
				for l.next(ctx) {
				}
			})
		}
		<-ctx.Done()
	})
}

// next works on one key and reports false when the queue was shut down.
func (l *loop) next(ctx context.Context) bool {
	key, down := l.queue.Get()
	if down {
		return false
	}
	defer l.queue.Done(key)
	err := l.reconcile(ctx, key)
	if err == nil || ctx.Err() != nil {
		l.queue.Forget(key)
		return true
	}
	// After a conflict or a delete, the cache is only a moment behind.
	if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		l.out.Printf("%s: %v: %v; trying again", l.name, key, err)
	}
	l.queue.AddRateLimited(key)
	return true
}
