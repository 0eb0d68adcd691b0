package tidings_test

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
)

// factoryFor returns a factory for a simulated server.
func factoryFor(server *apisim.Server) *tidings.Factory {
	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	check(err)
	return factory
}

// startAndSync starts a factory and waits for its informers.
func startAndSync(factory *tidings.Factory) {
	check(factory.Start(context.Background()))
	check(factory.WaitForSync(context.Background()))
}

// check ends an example that has failed.
func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Objects of any resource are held as maps.
func ExampleDynamic() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	colours, err := tidings.Dynamic(factory, resource, tidings.Selection{Labels: "kind=colour"})
	check(err)
	startAndSync(factory)
	for key, c := range colours.Lister().All() {
		fmt.Println(key, c.Object["kind"], c.GetLabels()["kind"])
	}
	// Output:
	// default/blue ConfigMap colour
	// default/green ConfigMap colour
}

// The server sends the metadata alone.
func ExampleMetadata() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	resource := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	colours, err := tidings.Metadata(factory, resource, tidings.Selection{Labels: "kind=colour"})
	check(err)
	startAndSync(factory)
	for key, c := range colours.Lister().All() {
		fmt.Println(key, c.Labels)
	}
	// Output:
	// default/blue map[kind:colour]
	// default/green map[kind:colour]
}

// A transform replaces objects before they are cached.
func ExampleNewTransform() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	loud := tidings.NewTransform(func(c *corev1.ConfigMap) (*corev1.ConfigMap, error) {
		c.Labels["kind"] = strings.ToUpper(c.Labels["kind"]) // c belongs to the transform
		return c, nil
	})
	colours, err := tidings.For[*corev1.ConfigMap](factory,
		tidings.Selection{Labels: "kind=colour", Transform: loud})
	check(err)
	startAndSync(factory)
	for key, c := range colours.Lister().All() {
		fmt.Println(key, c.Labels)
	}
	// Output:
	// default/blue map[kind:COLOUR]
	// default/green map[kind:COLOUR]
}

// Fields that the program does not read are not decoded.
func ExampleSelection_drop() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	colours, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{
		Namespace: "default", Drop: []string{"metadata.labels", "metadata.managedFields"},
	})
	check(err)
	startAndSync(factory)
	for key, c := range colours.Lister().All() {
		fmt.Println(key, c.Labels)
	}
	// Output:
	// default/blue map[]
	// default/green map[]
}

// A type that the server does not have counts as one without objects.
func ExampleSelection_optional() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	resource := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	widgets, err := tidings.Dynamic(factory, resource, tidings.Selection{Optional: true})
	check(err)
	startAndSync(factory) // does not wait for the type
	fmt.Println(widgets.HasSynced(), widgets.Lister().Len())
	// Output: true 0
}
