package ctrlruntime_test

import (
	"context"
	"fmt"
	"log"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// ExampleNewCache lists by a label from a cache of an API server in memory. A manager makes the
// cache by itself, with ctrl.Options{NewCache: ctrlruntime.NewCache}.
func ExampleNewCache() {
	server, err := apisim.New(apisim.Options{})
	check(err)
	defer server.Close() //nolint:errcheck // the program ends
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for _, name := range []string{"red", "blue"} {
		_, err := server.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, Labels: map[string]string{"color": name},
		}})
		check(err)
	}

	c, err := ctrlruntime.NewCache(server.Config(), cache.Options{})
	check(err)
	go func() { check(c.Start(ctx)) }()
	c.WaitForCacheSync(ctx)
	var found corev1.ConfigMapList
	check(c.List(ctx, &found, client.MatchingLabels{"color": "blue"}))
	for _, m := range found.Items {
		fmt.Println(m.Name)
	}
	for _, h := range ctrlruntime.Informers(c).Health() {
		fmt.Println(h.Name, h.Objects)
	}
	// Output:
	// blue
	// configmaps.v1 2
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
