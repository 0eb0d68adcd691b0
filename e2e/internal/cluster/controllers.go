package cluster

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	cacheddiscovery "k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app"
	"k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"

	controllersmetrics "k8s.io/component-base/metrics/prometheus/controllers"
)

// resync is the period of the controllers' informers; Kubernetes' own is 12 hours.
const resync = 30 * time.Second

// endGrace bounds the time until controllers have ended.
const endGrace = time.Minute

func (c *Cluster) startControllers(
	ctx context.Context, config *rest.Config, i Informers, wanted []string,
) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	component, err := options.NewDefaultComponentConfig()
	if err != nil {
		return err
	}
	component.Generic.Controllers = []string{"*"}
	discovery := cacheddiscovery.NewMemCacheClient(client.Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(discovery)
	shared := i.Shared(client, resync, dropManagedFields)
	onlyMetadata := i.Metadata(metadataClient, resync, dropManagedFields)
	builder := clientbuilder.SimpleControllerClientBuilder{ClientConfig: config}
	controllers := app.ControllerContext{
		ClientBuilder:                   builder,
		InformerFactory:                 shared,
		ObjectOrMetadataInformerFactory: informerfactory.NewInformerFactory(shared, onlyMetadata),
		ComponentConfig:                 component,
		RESTMapper:                      mapper,
		InformersStarted:                make(chan struct{}),
		ResyncPeriod:                    func() time.Duration { return resync },
		ControllerManagerMetrics:        controllersmetrics.NewControllerManagerMetrics("cluster"),
	}
	controllers.GraphBuilder = garbagecollector.NewDependencyGraphBuilder(ctx, metadataClient, mapper,
		map[schema.GroupResource]struct{}{{Resource: "events"}: {},
			{Group: "events.k8s.io", Resource: "events"}: {}},
		controllers.ObjectOrMetadataInformerFactory, controllers.InformersStarted)
	all, err := build(ctx, controllers, wanted)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	onlyMetadata.Start(ctx.Done())
	close(controllers.InformersStarted)
	c.running.Go(func() {
		app.RunControllers(ctx, controllers, all, 0, endGrace)
		shared.Shutdown()
		onlyMetadata.Shutdown()
	})
	return nil
}

// build makes the controllers of these names from kube-controller-manager's table.
func build(
	ctx context.Context, c app.ControllerContext, wanted []string,
) ([]app.Controller, error) {
	table := app.NewControllerDescriptors()
	var all []app.Controller
	for _, name := range wanted {
		descriptor, ok := table[name]
		if !ok || name == names.ServiceAccountTokenController {
			return nil, fmt.Errorf("there is no controller %q that can be built from the table", name)
		}
		controller, err := descriptor.BuildController(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if controller == nil {
			return nil, fmt.Errorf("%s does not run on this server", name)
		}
		all = append(all, controller)
	}
	return all, nil
}
