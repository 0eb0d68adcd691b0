package informers_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/informers"
)

// A program for client-go works as it is, with this import path.
func ExampleNewSharedInformerFactory() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})

	factory := informers.NewSharedInformerFactory(client, 0)
	pods := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		fmt.Println(err)
	}
	pod, err := pods.Pods("default").Get("web")
	fmt.Println(pod.Name, err)

	cancel()
	factory.Shutdown()
	// Output: web <nil>
}

// NewFilteredFor takes the place of coreinformers.NewFilteredPodInformer.
func ExampleNewFilteredFor() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", Labels: map[string]string{"tier": "front"}}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}},
	)

	pods := informers.NewFilteredFor[*corev1.Pod](client, metav1.NamespaceAll, 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.LabelSelector = "tier=front" })
	done := make(chan struct{})
	go func() {
		defer close(done)
		pods.RunWithContext(ctx)
	}()
	cache.WaitForCacheSync(ctx.Done(), pods.HasSynced)
	fmt.Println(pods.GetStore().ListKeys())

	cancel()
	<-done
	// Output: [default/web]
}

// Fields that the program does not read are left out of the cache.
func ExampleWithDrop() {
	ctx, cancel := context.WithCancel(context.Background())
	client := fake.NewClientset(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl"}},
		},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "app", Env: []corev1.EnvVar{{Name: "A", Value: "B"}}}}},
	})

	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithDrop("metadata.managedFields"),
		informers.WithDropFor[*corev1.Pod]("spec.containers.env"))
	pods := factory.Core().V1().Pods().Lister()
	factory.StartWithContext(ctx)
	if err := factory.WaitForCacheSyncWithContext(ctx).AsError(); err != nil {
		fmt.Println(err)
	}
	pod, err := pods.Pods("default").Get("web")
	fmt.Println(pod.Spec.NodeName, len(pod.ManagedFields), len(pod.Spec.Containers[0].Env), err)

	cancel()
	factory.Shutdown()
	// Output: node-1 0 0 <nil>
}
