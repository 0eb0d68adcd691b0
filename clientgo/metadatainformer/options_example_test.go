package metadatainformer_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata/fake"

	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// What the program does not read takes memory for nothing.
func ExampleWithTransform() {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	client := fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-1", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}},
	})

	factory := metadatainformer.NewSharedInformerFactoryWithOptions(client, 0,
		metadatainformer.WithTransform(func(obj any) (any, error) {
			o, ok := obj.(*metav1.PartialObjectMetadata)
			if !ok {
				return nil, fmt.Errorf("got a %T", obj)
			}
			o.ManagedFields = nil
			return o, nil
		}))
	defer factory.Shutdown()
	pods := factory.ForResource(schema.GroupVersionResource{Version: "v1", Resource: "pods"})
	pods.Informer()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	pod, err := pods.Lister().Get("default/web-1")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(pod.(*metav1.PartialObjectMetadata).ManagedFields))
	// Output: 0
}
