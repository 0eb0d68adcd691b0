package tidings_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tidings-go/tidings"
)

func ExampleInformer_IndexLabels() {
	server := cluster()
	defer server.Close()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()

	factory, err := tidings.NewFactory(server.Config(), tidings.FactoryOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := maps.IndexLabels("kind"); err != nil {
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
	colours := labels.SelectorFromSet(labels.Set{"kind": "colour"})
	for key := range maps.Lister().Namespace("default").Select(colours) {
		fmt.Println(key)
	}
	// Output:
	// default/blue
	// default/green
}
