package main

import (
	"context"
	"time"

	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/clientset/versioned"
	"github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions"
	shopinformers "github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions/shop/v1"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const resync = 10 * time.Minute

type sharedInformers struct {
	widgets    shopinformers.TypedWidgetInformer
	configMaps coreinformers.ConfigMapInformer

	start func(context.Context)
	stop  func()
}

// newInformers uses a generated factory for the widgets and client-go's for the rest.
func newInformers(config *rest.Config) (sharedInformers, error) {
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return sharedInformers{}, err
	}
	widgets, err := versioned.NewForConfig(config)
	if err != nil {
		return sharedInformers{}, err
	}
	builtin := informers.NewSharedInformerFactory(core, resync)
	custom := externalversions.NewSharedInformerFactory(widgets, resync)
	return sharedInformers{
		widgets:    custom.Shop().V1().Widgets(),
		configMaps: builtin.Core().V1().ConfigMaps(),
		start: func(ctx context.Context) {
			builtin.StartWithContext(ctx)
			custom.StartWithContext(ctx)
		},
		stop: func() {
			builtin.Shutdown()
			custom.Shutdown()
		},
	}, nil
}
