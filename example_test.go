package tidings_test

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// cluster returns a simulated server that holds two config maps.
func cluster() *apisim.Server {
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"blue", "green"} {
		colour := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"kind": "colour"},
		}}
		if _, err := server.Create(context.Background(), colour); err != nil {
			panic(err)
		}
	}
	return server
}

func ExampleFor() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(),
		tidings.FactoryOptions{Namespaces: []string{"default"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	colours, err := tidings.For[*corev1.ConfigMap](factory,
		tidings.Selection{Labels: "kind=colour"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for key := range colours.Lister().All() {
		fmt.Println(key)
	}
	_, err = colours.Lister().Namespace("default").Get("red")
	fmt.Println(err)
	// Output:
	// default/blue
	// default/green
	// configmaps "red" not found
}

func ExampleInformer_AddHandler() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	colours, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	registration, err := colours.AddHandler(tidings.Funcs[*corev1.ConfigMap]{
		OnAdd: func(c *corev1.ConfigMap, initial bool) {
			fmt.Println("added", c.Name, "initial:", initial)
		},
	}, tidings.HandlerOptions{Name: "painter"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	<-registration.Synced()
	registration.Remove()
	<-registration.Done()
	// Output:
	// added blue initial: true
	// added green initial: true
}

func ExampleInformer_Events() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	colours, err := tidings.Metadata(factory,
		schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, tidings.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for e, err := range colours.Events(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(e.Type, e.Key())
		if e.Object().Name == "green" {
			break
		}
	}
	// Output:
	// Added default/blue
	// Added default/green
}

func ExampleInformer_WaitFor() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	colours, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	written, err := server.Create(ctx,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "red"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := colours.WaitFor(ctx, written.(*corev1.ConfigMap).ResourceVersion); err != nil {
		fmt.Println(err)
		return
	}
	_, err = colours.Lister().Get("default/red")
	fmt.Println("found:", err == nil)
	// Output: found: true
}

func ExampleFactory_WaitForSync() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	server.RemoveResource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"})

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := tidings.For[*appsv1.Deployment](factory, tidings.Selection{}); err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	wait, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	fmt.Println(factory.WaitForSync(wait))
	// Output:
	// tidings: 1 informer is not synced: context deadline exceeded
	//   deployments.v1.apps is NoSuchResource: watch deployments.v1.apps: the server could not find the requested resource (the server has no such resource: install its CustomResourceDefinition, or check group, version and name)
}

func ExampleInformer_AddNamespace() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	roots, err := tidings.For[*corev1.ConfigMap](factory,
		tidings.Selection{Namespace: "kube-public"})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := factory.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	if err := roots.AddNamespace("kube-system"); err != nil {
		fmt.Println(err)
		return
	}
	if err := roots.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(roots.Namespaces())
	// Output: [kube-public kube-system]
}
