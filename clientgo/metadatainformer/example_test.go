package metadatainformer_test

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/fake"

	"github.com/tidings-go/tidings/clientgo/metadatainformer"
)

// A real program makes its client with metadata.NewForConfig.
func ExampleNewSharedInformerFactory() {
	scheme := fake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	client := fake.NewSimpleMetadataClient(scheme, &metav1.PartialObjectMetadata{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"app": "web"}},
	})

	factory := metadatainformer.NewSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	deployments := appsv1.SchemeGroupVersion.WithResource("deployments")
	lister := factory.ForResource(deployments).Lister()
	stop := make(chan struct{})
	defer close(stop)
	factory.Start(stop)
	factory.WaitForCacheSync(stop)

	web, err := lister.ByNamespace("default").Get("web")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(web.(*metav1.PartialObjectMetadata).Labels["app"])
	// Output: web
}
