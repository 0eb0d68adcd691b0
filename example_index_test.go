package tidings_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

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

// An index of the program's own.
func ExampleInformer_AddIndex() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	colours, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Labels: "kind=colour"})
	check(err)
	byLength := tidings.NewIndex("length", func(c *corev1.ConfigMap) []string {
		return []string{fmt.Sprint(len(c.Name))}
	})
	check(colours.AddIndex(byLength))
	startAndSync(factory)
	for key := range colours.Lister().ByIndex(byLength, "5") {
		fmt.Println(key)
	}
	// Output: default/green
}

// Select finds objects by their labels, with or without IndexLabels.
func ExampleLister_Select() {
	server := cluster()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(context.Background())

	maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default"})
	check(err)
	startAndSync(factory)
	colours, err := labels.Parse("kind in (colour, hue)")
	check(err)
	for key := range maps.Lister().Select(colours) {
		fmt.Println(key)
	}
	// Output:
	// default/blue
	// default/green
}

// ownedBy returns a config map with an owner, which may be its controller.
func ownedBy(owner types.UID, name string, controller bool) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "palette", UID: owner, Controller: &controller,
		}},
	}}
}

// Owned finds objects by the UID of an owner, Controlled by that of their controller.
func ExampleInformer_IndexOwners() {
	server, ctx := cluster(), context.Background()
	defer server.Close()
	factory := factoryFor(server)
	defer factory.Shutdown(ctx)

	const palette = types.UID("3f0a5a1e-0f0d-4c5c-9d3b-5e0c8f8d2a11")
	for _, c := range []*corev1.ConfigMap{
		ownedBy(palette, "pink", false), ownedBy(palette, "red", true),
	} {
		_, err := server.Create(ctx, c)
		check(err)
	}
	maps, err := tidings.For[*corev1.ConfigMap](factory, tidings.Selection{Namespace: "default"})
	check(err)
	check(maps.IndexOwners())
	startAndSync(factory)
	for key := range maps.Lister().Owned(palette) {
		fmt.Println("owned:", key)
	}
	for key := range maps.Lister().Namespace("default").Controlled(palette) {
		fmt.Println("controlled:", key)
	}
	// Output:
	// owned: default/pink
	// owned: default/red
	// controlled: default/red
}
