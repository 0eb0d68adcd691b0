package main

import (
	"context"
	"errors"
	"log"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings/clientgo/cache"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
	shopinformers "github.com/tidings-go/tidings/examples/clientgo/customtype/generated/informers/externalversions/shop/v1"
)

// closedName is the ConfigMap whose presence in a namespace means that the shop is closed there.
const closedName = "closed"

// run prints the changes of widgets until ctx ends, and the waiting widgets when a shop opens.
func run(ctx context.Context, informers sharedInformers, out *log.Logger) error {
	show := func(w *shopv1.Widget) {
		out.Printf("%v: %d of %d %s pieces are made", cache.MetaObjectToName(w), w.Status.Made,
			w.Spec.Pieces, w.Spec.Color)
	}
	// The generated informers have a typed form, so that no handler needs an assertion.
	widgets, err := informers.widgets.TypedInformer().AddTypedEventHandler(shopinformers.WidgetHandlerFuncs{
		AddFunc:    show,
		UpdateFunc: func(_, changed *shopv1.Widget) { show(changed) },
		DeleteFunc: func(deleted shopinformers.DeletedWidget) {
			out.Printf("%v is cancelled", deleted.GetObjectName())
		},
	})
	if err != nil {
		return err
	}
	lister := informers.widgets.Lister()
	configMaps, err := informers.configMaps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		DeleteFunc: func(obj any) {
			closed, ok := obj.(*corev1.ConfigMap)
			if !ok || closed.Name != closedName {
				return
			}
			out.Printf("the shop of %s opens", closed.Namespace)
			waiting, err := lister.Widgets(closed.Namespace).List(labels.Everything())
			if err != nil {
				out.Print(err)
			}
			for _, widget := range waiting {
				show(widget)
			}
		},
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	informers.start(ctx)
	defer informers.stop() // waits until the informers have ended, so stop comes first
	defer stop()
	if !cache.WaitForCacheSync(ctx.Done(), widgets.HasSynced, configMaps.HasSynced) {
		return errors.New("stopped before the caches were filled")
	}
	out.Print("the caches are filled")
	<-ctx.Done()
	return nil
}
