package main

import (
	"fmt"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidings-go/tidings/apisim"
	webv1 "github.com/tidings-go/tidings/examples/operator/api/v1"
)

func TestByObject(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) { testByObject(t, caching) })
	})
}

// testByObject selects ConfigMaps by label, Secrets by name, websites by namespace, and
// keeps less of the ConfigMaps than there is.
func testByObject(t *testing.T, caching string) {
	server := newServer(t, apisim.Options{})
	create(t, server, configMap("shop", "red", map[string]string{"color": "red"}))
	create(t, server, configMap("shop", "blue", map[string]string{"color": "blue"}))
	for _, name := range []string{"key", "other"} {
		create(t, server, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	create(t, server, website(t, "shop", "front", "hello"))
	create(t, server, website(t, "blog", "side", "more"))

	c := startCache(t, server, caching, cache.Options{ByObject: map[client.Object]cache.ByObject{
		&corev1.ConfigMap{}: {Label: labels.SelectorFromSet(labels.Set{"color": "red"}), Transform: withoutData},
		&corev1.Secret{}:    {Field: fields.OneTermEqualSelector(metav1.ObjectNameField, "key")},
		&webv1.Website{}:    {Field: fields.OneTermEqualSelector("metadata.namespace", "blog")},
	}})
	expect(t, "red ConfigMaps", names(t, c, &corev1.ConfigMapList{}), "shop/red")
	expect(t, "the Secret", names(t, c, &corev1.SecretList{}), "shop/key")
	expect(t, "websites of a namespace", names(t, c, &webv1.WebsiteList{}), "blog/side")
	expect(t, "namespaces, which nothing selects", names(t, c, &corev1.NamespaceList{}),
		"/attic", "/blog", "/default", "/kube-node-lease", "/kube-public", "/kube-system", "/shop")

	update(t, server, configMap("shop", "blue", map[string]string{"color": "red"}))
	update(t, server, configMap("shop", "red", map[string]string{"color": "green"}))
	create(t, server, configMap("shop", "pink", nil))
	create(t, server, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "blog", Name: "key"}})
	create(t, server, website(t, "attic", "old", "dusty"))
	synctest.Wait()
	expect(t, "ConfigMaps that are red now", names(t, c, &corev1.ConfigMapList{}), "shop/blue")
	expect(t, "Secrets of that name now", names(t, c, &corev1.SecretList{}), "blog/key", "shop/key")
	expect(t, "websites of a namespace now", names(t, c, &webv1.WebsiteList{}), "blog/side")

	var got corev1.ConfigMap
	if err := c.Get(t.Context(), key("shop/blue"), &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 0 || got.Annotations["data"] != "left out" {
		t.Errorf("data %v, annotations %v: the cache holds what the transform takes out", got.Data, got.Annotations)
	}
}

// withoutData is a transform.
func withoutData(obj any) (any, error) {
	m, ok := obj.(*corev1.ConfigMap)
	if !ok {
		return nil, fmt.Errorf("transform a %T: want a ConfigMap", obj)
	}
	m.Data = nil
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, "data", "left out")
	return m, nil
}

// TestNamespaceConfig gives the two namespaces of a cache different selectors.
func TestNamespaceConfig(t *testing.T) {
	eachCache(t, func(t *testing.T, caching string) {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(t, apisim.Options{})
			for _, namespace := range []string{"shop", "blog", "attic"} {
				create(t, server, configMap(namespace, "red", map[string]string{"color": "red"}))
				create(t, server, configMap(namespace, "blue", map[string]string{"color": "blue"}))
			}
			c := startCache(t, server, caching, cache.Options{
				DefaultTransform:  cache.TransformStripManagedFields(),
				DefaultNamespaces: map[string]cache.Config{"shop": {LabelSelector: labels.SelectorFromSet(labels.Set{"color": "red"})}, "blog": {}},
			})
			expect(t, "everywhere", names(t, c, &corev1.ConfigMapList{}), "blog/blue", "blog/red", "shop/red")
			expect(t, "in shop", names(t, c, &corev1.ConfigMapList{}, client.InNamespace("shop")), "shop/red")
			if err := c.List(t.Context(), &corev1.ConfigMapList{}, client.InNamespace("attic")); err == nil {
				t.Error("list a namespace that is not watched: want an error")
			}
		})
	})
}
