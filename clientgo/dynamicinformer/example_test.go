package dynamicinformer_test

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"

	"github.com/tidings-go/tidings/clientgo/dynamicinformer"
)

// A real program makes its client with dynamic.NewForConfig.
func ExampleNewDynamicSharedInformerFactory() {
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1",
		"kind":       "Widget",
		"metadata":   map[string]any{"namespace": "default", "name": "sprocket"},
	}}
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{widgets: "WidgetList"}, widget)

	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	lister := factory.ForResource(widgets).Lister()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	for resource, synced := range factory.WaitForCacheSync(stop) {
		fmt.Println(resource.Resource, "synced:", synced)
	}

	all, err := lister.ByNamespace("default").List(labels.Everything())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range all {
		fmt.Println(o.(*unstructured.Unstructured).GetName())
	}
	// Output:
	// widgets synced: true
	// sprocket
}
