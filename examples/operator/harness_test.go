package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/tidings-go/tidings/apisim"
	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

// eachCache runs a test with each cache that the manager can have.
func eachCache(t *testing.T, test func(t *testing.T, caching string)) {
	for _, caching := range []string{stockCache, tidingsInformers, tidingsCache} {
		t.Run(caching, func(t *testing.T) { test(t, caching) })
	}
}

// chosen returns the options of a manager with one of the caches.
func chosen(t *testing.T, caching string, namespaces ...string) manager.Options {
	t.Helper()
	o, err := options(caching, namespaces)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// newCache makes one of the caches.
func newCache(t *testing.T, server *apisim.Server, caching string, o cache.Options) cache.Cache {
	t.Helper()
	of := chosen(t, caching)
	o.Scheme, o.NewInformer = of.Scheme, of.Cache.NewInformer
	if of.NewCache == nil {
		of.NewCache = cache.New
	}
	c, err := of.NewCache(server.Config(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newServer returns a server that knows websites, and has the namespaces shop, blog and
// attic.
func newServer(t *testing.T, o apisim.Options) *apisim.Server {
	t.Helper()
	server, err := apisim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close the server: %v", err)
		}
	})
	if err := server.Register(websites(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"shop", "blog", "attic"} {
		create(t, server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return server
}

// websites is the resource as the custom resource definition beside this file has it.
func websites(t *testing.T) apisim.Resource {
	t.Helper()
	text, err := os.ReadFile("websites.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var crd struct {
		Spec struct {
			Group, Scope string
			Names        struct{ Kind, Plural, Singular string }
			Versions     []struct {
				Name         string
				Subresources map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatal(err)
	}
	if len(crd.Spec.Versions) != 1 {
		t.Fatalf("websites.yaml has %d versions, want 1", len(crd.Spec.Versions))
	}
	version := crd.Spec.Versions[0]
	_, hasStatus := version.Subresources["status"]
	return apisim.Resource{
		Group: crd.Spec.Group, Version: version.Name, Name: crd.Spec.Names.Plural, Kind: crd.Spec.Names.Kind,
		Singular: crd.Spec.Names.Singular, Namespaced: crd.Spec.Scope == "Namespaced", HasStatus: hasStatus,
	}
}

// website returns a website in the form of clients without its Go type, which the methods of the
// server take.
func website(t *testing.T, namespace, name, page string) *unstructured.Unstructured {
	t.Helper()
	site := &webv1.Website{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: webv1.WebsiteSpec{Page: page, Replicas: 2}}
	site.SetGroupVersionKind(webv1.GroupVersion().WithKind("Website"))
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(site)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: fields}
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels}, Data: map[string]string{"key": "value of " + name}}
}

func create(t *testing.T, server *apisim.Server, obj runtime.Object) {
	t.Helper()
	if _, err := server.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

func update(t *testing.T, server *apisim.Server, obj runtime.Object) {
	t.Helper()
	if _, err := server.Update(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
}

// startCache starts a cache on the server within the current bubble, stops it when the test ends,
// and returns it when its informers so far are synced.
func startCache(t *testing.T, server *apisim.Server, caching string, o cache.Options, before ...func(cache.Cache)) cache.Cache {
	t.Helper()
	c := newCache(t, server, caching, o)
	for _, f := range before {
		f(c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stop the cache: %v", err)
		}
	})
	if !c.WaitForCacheSync(ctx) {
		t.Fatal("the cache did not sync")
	}
	return c
}

// names returns the names in the list of a reader, as namespace/name, sorted.
func names(t *testing.T, reader client.Reader, list client.ObjectList, o ...client.ListOption) []string {
	t.Helper()
	if err := reader.List(t.Context(), list, o...); err != nil {
		t.Fatal(err)
	}
	found := []string{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		found = append(found, client.ObjectKeyFromObject(item.(client.Object)).String())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

func expect(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func websitesResource() schema.GroupVersionResource {
	return webv1.GroupVersion().WithResource("websites")
}

func configMapsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("configmaps")
}

func remove(t *testing.T, server *apisim.Server, resource schema.GroupVersionResource, namespace, name string) {
	t.Helper()
	if _, err := server.Delete(t.Context(), resource, namespace, name); err != nil {
		t.Fatal(err)
	}
}

// key reads namespace/name.
func key(name string) client.ObjectKey {
	namespace, name, _ := strings.Cut(name, "/")
	return client.ObjectKey{Namespace: namespace, Name: name}
}

// endWatches ends the watches from the server's side, before the cache does from its own.
// controller-runtime puts apimachinery's watch.Filter around watches of metadata, whose
// goroutine stays behind if the watch breaks when nobody reads it any more.
func endWatches(t *testing.T, server *apisim.Server) {
	t.Helper()
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}

// start starts a manager. The function it returns stops it, and fails the test if the
// manager does not end well.
func start(t *testing.T, m manager.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- m.Start(ctx) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("stop the manager: %v", err)
		}
	}
}

// eventually waits until a condition holds that becomes true by itself: work on both sides of a
// connection ends at no moment that a test could name.
func eventually(t *testing.T, ctx context.Context, what string, holds func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) { return holds(ctx), nil })
	if err != nil {
		t.Fatalf("%s: not so until the end: %v", what, err)
	}
}
