package ctrlruntime_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/ctrlruntime"
)

// BenchmarkList lists 10,000 ConfigMaps: 1 % of them by a label, and those of one of a hundred
// namespaces.
func BenchmarkList(b *testing.B) {
	for name, newCache := range map[string]cache.NewCacheFunc{
		"controller-runtime": cache.New, "NewCache": ctrlruntime.NewCache,
	} {
		b.Run(name, func(b *testing.B) {
			c := fullCache(b, newCache)
			for what, o := range map[string]client.ListOption{
				"label": client.MatchingLabels{"part": "7"}, "namespace": client.InNamespace("ns-7"),
			} {
				b.Run(what, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						var list corev1.ConfigMapList
						if err := c.List(b.Context(), &list, o); err != nil || len(list.Items) != 100 {
							b.Fatalf("%d objects, %v", len(list.Items), err)
						}
					}
				})
			}
		})
	}
}

// fullCache returns a cache of 10,000 ConfigMaps that runs until the benchmark ends.
func fullCache(b *testing.B, newCache cache.NewCacheFunc) cache.Cache {
	b.Helper()
	server, err := apisim.New(apisim.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = server.Close() })
	for n := range 100 {
		namespace := &corev1.Namespace{}
		namespace.Name = fmt.Sprintf("ns-%d", n)
		if _, err := server.Create(b.Context(), namespace); err != nil {
			b.Fatal(err)
		}
		for part := range 100 {
			labels := map[string]string{"part": fmt.Sprint(part)}
			m := configMap(namespace.Name, fmt.Sprint(part), labels)
			if _, err := server.Create(b.Context(), m); err != nil {
				b.Fatal(err)
			}
		}
	}
	c, err := newCache(server.Config(), cache.Options{})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	b.Cleanup(func() {
		stop()
		<-done
	})
	if !c.WaitForCacheSync(ctx) || c.List(ctx, &corev1.ConfigMapList{}) != nil {
		b.Fatal("the cache does not sync")
	}
	return c
}
