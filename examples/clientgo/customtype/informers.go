package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/tidings-go/tidings/clientgo/informers"
	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset/versioned"
	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset/versioned/scheme"
	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions/shop"
	shopinformers "github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions/shop/v1"
)

// resync is the period in which handlers receive every cached object again.
const resync = 10 * time.Minute

// sharedInformers are the informers of the program.
type sharedInformers struct {
	widgets    shopinformers.TypedWidgetInformer
	configMaps coreinformers.ConfigMapInformer

	start func(context.Context) // all informers that were asked for
	stop  func()                // waits for them, once the context has ended
}

// newInformers puts the generated group beside the built-in ones. The scheme, the
// mapper and the config let Tidings read the widgets itself; with empty options the
// generated code would make client-go's informer of them.
func newInformers(config *rest.Config) (sharedInformers, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return sharedInformers{}, err
	}
	widgets, err := versioned.NewForConfig(config)
	if err != nil {
		return sharedInformers{}, err
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return sharedInformers{}, err
	}
	factory := informers.NewSharedInformerFactory(core, resync)
	group, err := informers.ForGroup(factory, versioned.Interface(widgets), shop.New, informers.GroupOptions{
		Scheme: scheme.Scheme,
		Mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered)),
		Config: config,
	})
	if err != nil {
		return sharedInformers{}, fmt.Errorf("put the widgets on the factory: %w", err)
	}
	return sharedInformers{
		widgets:    group.V1().Widgets(),
		configMaps: factory.Core().V1().ConfigMaps(),
		start:      factory.StartWithContext,
		stop:       factory.Shutdown,
	}, nil
}
