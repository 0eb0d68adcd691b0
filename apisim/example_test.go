package apisim_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"

	"github.com/tidings-go/tidings/apisim"
)

// start returns a server and a client of it.
func start() (*apisim.Server, kubernetes.Interface) {
	server, err := apisim.New(apisim.Options{})
	check(err)
	client, err := kubernetes.NewForConfig(server.Config())
	check(err)
	return server, client
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func ExampleServer() {
	ctx := context.Background()
	server, err := apisim.New(apisim.Options{})
	check(err)
	defer server.Close()
	client, err := kubernetes.NewForConfig(server.Config())
	check(err)

	pods := client.CoreV1().Pods("default")
	_, err = pods.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	check(err)
	list, err := pods.List(ctx, metav1.ListOptions{})
	check(err)
	fmt.Println(len(list.Items), "pod:", list.Items[0].Name)
	// Output: 1 pod: web
}

func ExampleUpdate() {
	ctx := context.Background()
	server, _ := start()
	defer server.Close()

	_, err := apisim.Create(ctx, server, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})
	check(err)
	pod, err := apisim.Get[*corev1.Pod](ctx, server, "default", "web")
	check(err)
	pod.Status.Phase = corev1.PodRunning
	pod, err = apisim.Update(ctx, server, pod)
	check(err)
	fmt.Println(pod.Name, pod.Status.Phase)
	// Output: web Running
}

func ExampleServer_Inject() {
	ctx := context.Background()
	server, client := start()
	defer server.Close()

	// The second list is refused, and everything else goes well.
	fault := server.Inject(apisim.Match{Verb: "list", Resource: "pods"}.Nth(2), apisim.Refuse(http.StatusForbidden, 0))
	for range 3 {
		_, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		fmt.Println(err == nil, apierrors.IsForbidden(err))
	}
	fmt.Println("met by", fault.Met())
	// Output:
	// true false
	// false true
	// true false
	// met by 1
}

func ExampleCutBefore() {
	ctx := context.Background()
	server, client := start()
	defer server.Close()

	// The pod is created, and its creator does not know.
	fault := server.Inject(apisim.Match{Verb: "create"}, apisim.CutBefore(0))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web"}}
	_, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	fmt.Println("created:", err == nil)

	fault.Lift()
	_, err = client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{})
	fmt.Println("exists already:", apierrors.IsAlreadyExists(err))
	// Output:
	// created: false
	// exists already: true
}

func ExampleServer_Requests() {
	ctx := context.Background()
	server, client := start()
	defer server.Close()

	_, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{Limit: 500})
	check(err)
	if _, err := client.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{}); err == nil {
		fmt.Println("found a pod")
		return
	}
	fmt.Print(server.Requests())
	fmt.Println(len(server.Requests().Of(apisim.Match{Verb: "list", Resource: "pods"})), "list")
	// Output:
	// list pods ?limit=500 200
	// get pods namespace=default name=web 404
	// 1 list
}

func ExampleServer_LoadFrom() {
	ctx := context.Background()
	server, _ := start()
	defer server.Close()

	err := server.LoadFrom("types and objects", strings.NewReader(`
apiVersion: example.com/v1
kind: Widget
metadata: {name: a, namespace: shop}
spec: {size: 3}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - {name: v1, served: true, storage: true}
`))
	check(err)
	widgets := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	list, _, err := server.List(ctx, widgets, "shop")
	fmt.Println(len(list), err)
	// Output: 1 <nil>
}

func ExampleServer_SetUsers() {
	ctx := context.Background()
	server, _ := start()
	defer server.Close()

	reader := apisim.User{Name: "reader", Token: "secret", Allow: []apisim.Rule{{Verbs: []string{"get", "list", "watch"}, Resources: []string{"pods"}}}}
	if err := server.SetUsers(reader); err != nil {
		fmt.Println(err)
		return
	}
	config := server.Config()
	config.BearerToken = "secret"
	client, err := kubernetes.NewForConfig(config)
	check(err)
	_, err = client.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	fmt.Println("pods:", err)
	_, err = client.CoreV1().Secrets("").List(ctx, metav1.ListOptions{})
	fmt.Println("secrets:", err)
	// Output:
	// pods: <nil>
	// secrets: secrets is forbidden: User "reader" cannot list resource "secrets" in API group "" at the cluster scope
}
