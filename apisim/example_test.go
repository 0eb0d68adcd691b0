package apisim_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
)

func ExampleServer() {
	ctx := context.Background()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	pods := client.CoreV1().Pods("default")
	if _, err := pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(list.Items), "pod:", list.Items[0].Name)
	// Output: 1 pod: web
}

func ExampleServer_Compact() {
	ctx := context.Background()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		fmt.Println(err)
		return
	}
	list, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := server.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}); err != nil {
		fmt.Println(err)
		return
	}
	server.Compact() // the version that the client knows is gone

	watch, err := client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watch.Stop()
	event := <-watch.ResultChan()
	fmt.Println(event.Type, event.Object.(*metav1.Status).Code)
	// Output: ERROR 410
}
