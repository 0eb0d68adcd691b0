package controller_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/tidings-go/tidings"
	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller"
)

var (
	widgetVersion = schema.GroupVersion{Group: "example.com", Version: "v1"}
	definitions   = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// widget is a type whose resource only the server knows.
type widget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
}

func (w *widget) DeepCopyObject() runtime.Object {
	return &widget{w.TypeMeta, *w.ObjectMeta.DeepCopy()}
}

func define(w *world, plural, scope string) {
	w.Helper()
	_, err := w.server.Create(w.ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": definitions.GroupVersion().String(), "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + ".example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": scope,
			"names":    map[string]any{"plural": plural, "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true}},
		},
	}})
	fatal(w.T, err)
}

func undefine(w *world, plural string) {
	w.Helper()
	_, err := w.server.Delete(w.ctx, definitions, "", plural+".example.com")
	fatal(w.T, err)
}

func newWidget(namespace, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion(widgetVersion.String())
	made.SetKind("Widget")
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// TestC02_OwnersThatComeBackWithAnotherScope replaces the definition of the owners: their
// objects are called for under the keys that they have now.
func TestC02_OwnersThatComeBackWithAnotherScope(t *testing.T) {
	for _, away := range []time.Duration{0, 2 * time.Minute} {
		inWorld(t, func(w *world) {
			define(w, "widgets", "Namespaced")
			owners, err := tidings.Dynamic(w.factory, widgetVersion.WithResource("widgets"), tidings.Selection{})
			fatal(t, err)
			var log calls
			type request = controller.Request[*unstructured.Unstructured]
			c := control(w, owners, controller.Options[*unstructured.Unstructured]{
				Secondaries: []controller.Secondary{
					controller.Owns(informer[*corev1.ConfigMap](w)),
				},
			}, func(_ context.Context, r request) (controller.Result, error) {
				log.add("%s", r.Key)
				return controller.Result{}, nil
			})
			stop := start(w, c)
			for _, namespace := range []string{"a", "", "a"} {
				owner := create(w, newWidget(namespace, "x"))
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				log.take()
				child := create(w, ownedBy(configMap("a", "child"), owner, widgetVersion.String(), "Widget"))
				want := "x"
				if namespace != "" {
					want = "a/x"
				}
				log.expect(t, want)
				_, err := w.server.Delete(w.ctx, corev1.SchemeGroupVersion.WithResource("configmaps"), "a", child.Name)
				fatal(t, err)
				undefine(w, "widgets")
				time.Sleep(away)
				if namespace == "" {
					define(w, "widgets", "Namespaced")
				} else {
					define(w, "widgets", "Cluster")
				}
			}
			fatal(t, stop())
		})
	}
}

// TestC03_WritesUnderAnotherName: the definition comes back under another name. The writes of calls
// are waited for all the same.
func TestC03_WritesUnderAnotherName(t *testing.T) {
	inWorld(t, func(w *world) {
		scheme := runtime.NewScheme()
		scheme.AddKnownTypeWithName(widgetVersion.WithKind("Widget"), &widget{})
		config := w.server.Config()
		config.QPS = -1
		factory, err := tidings.NewFactory(config, tidings.FactoryOptions{
			Scheme: scheme, Logger: discard, Transport: tidings.Transport{NoStreamedLists: true},
		})
		fatal(t, err)
		w.factory = factory
		client, err := dynamic.NewForConfig(w.guard.Config())
		fatal(t, err)
		plural, written := "widgets", ""
		var log calls
		define(w, plural, "Namespaced")
		for _, resource := range []string{"widgets", "widgetry"} {
			w.server.Inject(apisim.Match{Verb: "watch", Resource: resource},
				apisim.Stall(apisim.EachFrame, 3*time.Second))
		}
		type request = controller.Request[*widget]
		c := control(w, informer[*widget](w), controller.Options[*widget]{},
			func(ctx context.Context, r request) (controller.Result, error) {
				if r.Gone {
					return controller.Result{}, nil
				}
				if written != "" {
					if r.Object.ResourceVersion == written {
						log.add("%s shows", r.Key)
					} else {
						log.add("%s is old", r.Key)
					}
					written = ""
					return controller.Result{}, nil
				}
				if len(r.Object.Labels) > 0 {
					return controller.Result{}, nil
				}
				got, err := client.Resource(widgetVersion.WithResource(plural)).Namespace("a").Patch(ctx, r.Object.Name,
					types.MergePatchType, []byte(`{"metadata":{"labels":{"n":"1"}}}`), metav1.PatchOptions{})
				if err == nil {
					written = got.GetResourceVersion()
				}
				return controller.Result{RequeueAfter: time.Millisecond}, err
			})
		stop := start(w, c)
		for _, next := range []string{"widgetry", "widgets"} {
			create(w, newWidget("a", "x"))
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if got := log.take(); !slices.Equal(got, []string{"a/x shows"}) {
				t.Errorf("with %s: %q", plural, got)
			}
			undefine(w, plural)
			plural = next
			define(w, plural, "Namespaced")
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}
		fatal(t, stop())
	})
}
