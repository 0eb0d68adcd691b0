package metadatainformer_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// A real program has its config of clientcmd or rest.InClusterConfig.
func ExampleNewClient() {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", Annotations: map[string]string{"long": "story"}}}
	if _, err := server.Create(context.Background(), pod); err != nil {
		fmt.Println(err)
		return
	}

	client, err := metadatainformer.NewClient(server.Config(), nil) // was metadata.NewForConfig(config)
	if err != nil {
		fmt.Println(err)
		return
	}
	factory := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0, metadatainformer.WithDrop("metadata.annotations"))
	defer factory.Shutdown()
	lister := factory.ForResource(corev1.SchemeGroupVersion.WithResource("pods")).Lister()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	cached, err := lister.Get("default/web-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cached.(*metav1.PartialObjectMetadata).Name, cached.(*metav1.PartialObjectMetadata).Annotations)
	// Output: web-1 map[]
}
