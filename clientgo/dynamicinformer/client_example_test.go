package dynamicinformer_test

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
)

// A real program has its config of clientcmd or rest.InClusterConfig.
func ExampleNewClient() {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	if err := server.Register(apisim.Resource{Group: widgets.Group, Version: widgets.Version, Name: widgets.Resource, Kind: "Widget", Namespaced: true}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := server.Create(context.Background(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "default", "name": "sprocket", "annotations": map[string]any{"long": "story"}},
	}}); err != nil {
		fmt.Println(err)
		return
	}

	client, err := dynamicinformer.NewClient(server.Config(), nil) // was dynamic.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactoryWithOptions(client, 0, dynamicinformer.WithDrop("metadata.annotations"))
	defer factory.Shutdown()
	lister := factory.ForResource(widgets).Lister()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	widget, err := lister.Get("default/sprocket")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(widget.(*unstructured.Unstructured).GetName(), widget.(*unstructured.Unstructured).GetAnnotations())
	// Output: sprocket map[]
}
