package cluster

import (
	"context"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/profile"
)

func (c *Cluster) startScheduler(ctx context.Context, config *rest.Config, i Informers) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	factory, err := i.forScheduler(client)
	if err != nil {
		return err
	}
	dynamicFactory := i.Dynamic(dynamicClient, 0)
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	s, err := scheduler.New(ctx, client, factory, dynamicFactory,
		profile.NewRecorderFactory(broadcaster), scheduler.WithKubeConfig(config))
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	dynamicFactory.Start(ctx.Done())
	c.running.Go(func() {
		defer broadcaster.Shutdown()
		factory.WaitForCacheSync(ctx.Done())
		dynamicFactory.WaitForCacheSync(ctx.Done())
		if s.WaitForHandlersSync(ctx) == nil {
			s.Run(ctx)
		}
		factory.Shutdown()
		dynamicFactory.Shutdown()
	})
	return nil
}
