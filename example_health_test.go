package tidings_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidings-go/tidings"
)

// Health describes each informer of a factory.
func ExampleFactory_Health() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	_, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: "kind=colour"})
	check(err)
	for _, h := range factory.Health() {
		fmt.Println(h.Name, "is", h.State)
	}
	startAndSync(factory)
	for _, h := range factory.Health() {
		fmt.Println(h.Name, "holds", h.Objects, "objects, synced:", h.Synced)
	}
	// Output:
	// configmaps.v1 [labels kind=colour] is Pending
	// configmaps.v1 [labels kind=colour] holds 2 objects, synced: true
}

// The watch ends with the last handle of an informer.
func ExampleInformer_Release() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	colours := tidings.Selection{Labels: "kind=colour"}
	mine, err := tidings.For[*corev1.ConfigMap](factory, colours)
	check(err)
	yours, err := tidings.For[*corev1.ConfigMap](factory, colours) // the same informer
	check(err)
	startAndSync(factory)

	mine.Release()
	fmt.Println("informers:", len(factory.Health()), "objects:", yours.Lister().Len())
	yours.Release()
	fmt.Println("informers:", len(factory.Health()))
	// Output:
	// informers: 1 objects: 2
	// informers: 0
}
