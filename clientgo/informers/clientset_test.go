package informers

import (
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
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
)

// TestClientset reads over HTTP with a factory that has every option for the source.
func TestClientset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		create(t, server,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"app": "web"}}},
			pod("a", "one", "web"), pod("a", "two", "db"), pod("default", "three", "web"))
		f := NewSharedInformerFactoryWithOptions(client, 0, WithNamespace("a"), WithTweakListOptions(selectWeb), WithTransform(mark))
		pods, nodes := f.Core().V1().Pods(), f.Core().V1().Nodes().Informer()
		informer := pods.Informer()
		start(t, f)
		checkKeys(t, informer.GetStore(), "a/one")
		checkKeys(t, nodes.GetStore(), "n")
		create(t, server, pod("a", "four", "web"), pod("a", "five", "db"))
		synctest.Wait()
		checkKeys(t, informer.GetStore(), "a/four", "a/one")
		got, err := pods.Lister().Pods("a").Get("four")
		if err != nil || got.Labels["seen"] != "yes" {
			t.Errorf("Get: %v, %v; want the pod as the transform leaves it", got, err)
		}
		if byNamespace, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "a"); err != nil || len(byNamespace) != 2 {
			t.Errorf("the namespace index has %d pods, %v; want 2", len(byNamespace), err)
		}
		for _, request := range server.Requests() {
			if request.Query.Get("labelSelector") != "app=web" {
				t.Errorf("%s %v asks for %v, want app=web", request.Verb, request.Resource, request.Query)
			}
		}
	})
}

// TestClientsetReadsEveryResource syncs an informer of each resource that the server has,
// through the REST client.
func TestClientsetReadsEveryResource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		_, lists, err := client.Discovery().ServerGroupsAndResources()
		if err != nil {
			t.Fatal(err)
		}
		f := NewSharedInformerFactory(client, 0)
		asked := map[schema.GroupVersionResource]cache.SharedIndexInformer{}
		for _, list := range lists {
			version, err := schema.ParseGroupVersion(list.GroupVersion)
			if err != nil {
				t.Fatal(err)
			}
			for _, served := range list.APIResources {
				gvr := version.WithResource(served.Name)
				if _, ok := resourceFor(gvr); !ok {
					continue // subresources, reviews, bindings: there are no objects to cache
				}
				generic, err := f.ForResource(gvr)
				if err != nil {
					t.Fatal(err)
				}
				asked[gvr] = generic.Informer()
			}
		}
		if len(asked) < 50 {
			t.Fatalf("the server has %d resources in common with the table: they were read wrongly", len(asked))
		}
		start(t, f)
		if err := f.WaitForCacheSyncWithContext(soon(t)).AsError(); err != nil {
			t.Error(err)
		}
		namespaces := asked[corev1.SchemeGroupVersion.WithResource("namespaces")]
		if len(namespaces.GetStore().List()) == 0 {
			t.Error("no namespaces, and every server has some")
		}
		for _, request := range server.Requests() {
			if request.Status >= 400 {
				t.Errorf("%s of %v is answered with %d", request.Verb, request.Resource, request.Status)
			}
		}
	})
}

// widgetVersion is the API version of the widgets on a server.
var widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}

// TestForGroupOwnSource reads a generated group with our own source, in JSON: its client is
// nil. The options of the factory apply.
func TestForGroupOwnSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		if err := server.Register(apisim.Resource{Group: widgetVersion.Group, Version: widgetVersion.Version, Name: "widgets", Kind: "widget", Namespaced: true}); err != nil {
			t.Fatal(err)
		}
		create(t, server,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}},
			unstructuredWidget("a", "one", "web"), unstructuredWidget("a", "two", "db"), unstructuredWidget("default", "three", "web"))
		scheme := runtime.NewScheme()
		scheme.AddKnownTypes(widgetVersion, &widget{}, &widgetList{})
		metav1.AddToGroupVersion(scheme, widgetVersion)
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(widgetVersion.WithKind("widget"), meta.RESTScopeNamespace)

		f := NewSharedInformerFactoryWithOptions(nil, 0, WithTransform(mark),
			WithDropFor[*widget]("metadata.annotations"), WithDrop("metadata.managedFields"))
		group, err := ForGroup(f, widgetClient(nil), newWidgets, GroupOptions{
			Namespace: "a", TweakListOptions: selectWeb, Scheme: scheme, Mapper: mapper, Config: server.Config(),
		})
		if err != nil {
			t.Fatal(err)
		}
		informer := group.Informer()
		start(t, f)
		checkKeys(t, informer.GetStore(), "a/one")
		for _, o := range informer.GetStore().List() {
			if w, ok := o.(*widget); !ok || w.Labels["seen"] != "yes" || w.Annotations != nil || len(w.Finalizers) != 1 {
				t.Errorf("the store has %v, want a transformed widget without annotations", o)
			}
		}
		for _, request := range server.Requests() {
			if !strings.HasPrefix(request.Resource.Resource, "widgets") || request.Namespace != "a" {
				t.Errorf("the server received a request of %v in %q", request.Resource, request.Namespace)
			}
		}
	})
}

// TestForGroupFollowsItsDefinition installs the definition of a generated group late, and replaces
// it by others. The mapper is outdated from the second one on.
func TestForGroupFollowsItsDefinition(t *testing.T) {
	for name, known := range map[string]bool{"unknown to the mapper": false, "outdated": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server, _ := newServer(t)
				create(t, server, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
				scheme := runtime.NewScheme()
				scheme.AddKnownTypes(widgetVersion, &widget{}, &widgetList{})
				metav1.AddToGroupVersion(scheme, widgetVersion)
				mapper := meta.NewDefaultRESTMapper(nil)
				if known {
					mapper.Add(widgetVersion.WithKind("widget"), meta.RESTScopeNamespace)
				}
				f := NewSharedInformerFactoryWithOptions(nil, 0)
				group, err := ForGroup(f, widgetClient(nil), newWidgets, GroupOptions{
					Namespace: "a", Scheme: scheme, Mapper: mapper, Config: server.Config(),
				})
				if err != nil {
					t.Fatal(err)
				}
				store := group.Informer().GetStore()
				start(t, f)
				time.Sleep(time.Minute)
				definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
				for _, d := range []struct{ plural, scope string }{
					{"widgets", "Namespaced"}, {"widgetry", "Namespaced"}, {"widgets", "Cluster"}, {"widgetry", "Cluster"}, {"widgets", "Namespaced"},
				} {
					create(t, server, &unstructured.Unstructured{Object: map[string]any{
						"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
						"metadata": map[string]any{"name": d.plural + ".example.com"},
						"spec": map[string]any{
							"group": "example.com", "scope": d.scope,
							"names":    map[string]any{"plural": d.plural, "kind": "widget"},
							"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
						},
					}})
					keys := []string{"a/one", "default/two"}
					if d.scope == "Cluster" {
						keys = []string{"one"}
					}
					for _, key := range keys {
						namespace, name, err := cache.SplitMetaNamespaceKey(key)
						if err != nil {
							t.Fatal(err)
						}
						made := unstructuredWidget(namespace, name, "web")
						made.SetFinalizers(nil) // they would keep the definition
						create(t, server, made)
					}
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					checkKeys(t, store, keys[0])
					if _, err := server.Delete(t.Context(), definitions, "", d.plural+".example.com"); err != nil {
						t.Fatal(err)
					}
				}
			})
		})
	}
}

func unstructuredWidget(namespace, name, app string) *unstructured.Unstructured {
	w := &unstructured.Unstructured{}
	w.SetGroupVersionKind(widgetVersion.WithKind("widget"))
	w.SetNamespace(namespace)
	w.SetName(name)
	w.SetLabels(map[string]string{"app": app})
	w.SetAnnotations(map[string]string{"a": "b"})
	w.SetFinalizers([]string{"example.com/keep"})
	return w
}
