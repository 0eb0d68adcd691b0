package factory_test

import (
	"reflect"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// builtIn returns objects of built-in types. The items of their lists have no kind.
func builtIn() map[schema.GroupVersionResource]runtime.Object {
	meta := metav1.ObjectMeta{
		Namespace: "a", Name: "web", Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "\u00fc\n\"x\""},
		Finalizers: []string{"example.com/f"}, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "u"}},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:data":{}}`)}},
	}
	unavailable := intstr.FromString("25%")
	return map[schema.GroupVersionResource]runtime.Object{
		corev1.SchemeGroupVersion.WithResource("configmaps"): &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"k": "v"}, BinaryData: map[string][]byte{"b": {0, 255}}},
		corev1.SchemeGroupVersion.WithResource("secrets"):    &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"k": []byte("v")}},
		appsv1.SchemeGroupVersion.WithResource("deployments"): &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)),
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &unavailable}},
		}},
		corev1.SchemeGroupVersion.WithResource("namespaces"): &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
	}
}

// TestContentIsClientGos compares the cached objects of all libraries of a form, field by field:
// from a list, a streamed list and a watch, with fakes and over HTTP in each encoding.
func TestContentIsClientGos(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		t.Run(map[bool]string{true: "streamed list", false: "list"}[streamed], func(t *testing.T) {
			featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streamed)
			t.Run("fake", func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { compareContent(t, newFakes(t), libraries[:6], nil) })
			})
			for name, json := range map[string]bool{"HTTP": false, "JSON": true} {
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := newServer(t)
						w.json = json
						compareContent(t, w, libraries, func(obj runtime.Object) { w.add(t, obj) })
					})
				})
			}
		})
	}
}

// compareContent compares widgets, and built-in objects if add creates them.
func compareContent(t *testing.T, w world, libraries []library, add func(runtime.Object)) {
	t.Helper()
	resources := []schema.GroupVersionResource{widgets}
	objects := builtIn()
	w.create(t, widget("a", "listed", "red"))
	if add != nil {
		for gvr, obj := range objects {
			resources = append(resources, gvr)
			add(obj.DeepCopyObject())
		}
	}
	factories := make([]factoryOf, len(libraries))
	for i, l := range libraries {
		factories[i] = l.factory(w.clients(t), settings{})
		for _, gvr := range resources {
			factories[i].ForResource(gvr)
		}
		start(t, factories[i])
	}
	w.create(t, widget("a", "watched", "red"))
	w.create(t, widget("a", "updated", "red"))
	w.update(t, widget("a", "updated", "blue"))
	if add != nil {
		for _, obj := range objects {
			obj.(metav1.Object).SetName("watched")
			add(obj)
		}
	}
	synctest.Wait()
	for _, gvr := range resources {
		theirs := map[form]map[string]any{}
		for i, l := range libraries {
			got := content(t, factories[i].ForResource(gvr).Informer())
			if l.clientGo {
				theirs[l.form] = got
			}
			if len(got) < 2 || !reflect.DeepEqual(got, theirs[l.form]) {
				t.Errorf("of %s %s holds %v, and client-go's %v", gvr.Resource, l.name, got, theirs[l.form])
			}
		}
	}
}

// content returns the cached objects of an informer, by key.
func content(t *testing.T, informer cache.SharedIndexInformer) map[string]any {
	t.Helper()
	content := map[string]any{}
	for _, key := range informer.GetStore().ListKeys() {
		content[key] = cached(t, informer, key)
	}
	return content
}

// TestOwnSourceReads checks whether our source or the client has decoded the objects.
func TestOwnSourceReads(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library, w *httpWorld) {
		for _, name := range []string{"one", "two", "three"} {
			w.create(t, widget("a", name, "red"))
		}
		health, ok := tidingscache.HealthOf(started(t, l, w, settings{}))
		if ok == l.clientGo {
			t.Fatalf("the informer is of this module: %t", ok)
		}
		if d := health.Decoding; ok && ((d.Shared >= 3) != l.own || (d.After.Shared >= 3) == l.own) {
			t.Errorf("health has %+v; read with our source: %t", d, l.own)
		}
	})
}
