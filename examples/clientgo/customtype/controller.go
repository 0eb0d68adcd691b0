package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/util/workqueue"

	"github.com/tidings-go/tidings/clientgo/cache"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset/versioned"
	shopinformers "github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions/shop/v1"
	shoplisters "github.com/tidings-go/tidings/examples/clientgo/customtype/generated/listers/shop/v1"
)

// closedName is the ConfigMap whose presence in a namespace stops the work there.
const closedName = "closed"

// controller makes widgets, one piece at a time, until as many exist as were ordered.
type controller struct {
	client     versioned.Interface
	widgets    shoplisters.WidgetLister
	configMaps corelisters.ConfigMapLister
	queue      workqueue.TypedRateLimitingInterface[cache.ObjectName]
	out        io.Writer // of the one worker
}

// run works until ctx ends.
func run(ctx context.Context, informers sharedInformers, out io.Writer) error {
	c := &controller{
		client:     informers.client,
		widgets:    informers.widgets.Lister(),
		configMaps: informers.configMaps.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](10*time.Millisecond, time.Minute)),
		out: out,
	}
	synced, err := c.follow(informers)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	informers.start(ctx)
	defer informers.stop() // waits until the informers have ended, so stop comes first
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("stopped before the caches were filled")
	}
	var working sync.WaitGroup
	working.Go(func() {
		for c.next(ctx) {
		}
	})
	<-ctx.Done()
	c.queue.ShutDown()
	working.Wait()
	return nil
}

// follow adds the handlers.
func (c *controller) follow(informers sharedInformers) ([]cache.InformerSynced, error) {
	add := func(widget *shopv1.Widget) { c.queue.Add(cache.MetaObjectToName(widget)) }
	// The generated informers have a typed form, so that no handler needs an assertion.
	widgets, err := informers.widgets.TypedInformer().AddTypedEventHandler(shopinformers.WidgetHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, changed *shopv1.Widget) { add(changed) },
		DeleteFunc: func(deleted shopinformers.DeletedWidget) { c.queue.Add(deleted.GetObjectName()) },
	})
	if err != nil {
		return nil, err
	}
	configMaps, err := informers.configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: c.reopened,
	})
	if err != nil {
		return nil, err
	}
	return []cache.InformerSynced{widgets.HasSynced, configMaps.HasSynced}, nil
}
