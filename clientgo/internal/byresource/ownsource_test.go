package byresource_test

import (
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/features"
	featurestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// builtIn are objects of built-in types, whose lists do not say of what kind each item is.
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

// TestBuiltInContentIsClientGos compares what is cached of built-in types with what
// client-go's informers cache: of a list, a streamed list and a watch, in each encoding.
func TestBuiltInContentIsClientGos(t *testing.T) {
	for _, streamed := range []bool{true, false} {
		for _, json := range []bool{true, false} {
			name := map[bool]string{true: "streamed list", false: "list"}[streamed] + map[bool]string{true: " in JSON", false: ""}[json]
			t.Run(name, func(t *testing.T) {
				featurestesting.SetFeatureDuringTest(t, features.WatchListClient, streamed)
				synctest.Test(t, func(t *testing.T) {
					w := newServer(t)
					w.json = json
					compareBuiltIn(t, w)
				})
			})
		}
	}
}

func compareBuiltIn(t *testing.T, w *httpWorld) {
	t.Helper()
	objects := builtIn()
	for _, obj := range objects {
		if _, err := w.server.Create(t.Context(), obj.DeepCopyObject()); err != nil {
			t.Fatal(err)
		}
	}
	all := withServer()
	factories := make([]factory, len(all))
	for i, l := range all {
		factories[i] = l.factory(w.clients(t), 0)
		for gvr := range objects {
			factories[i].ForResource(gvr)
		}
		start(t, factories[i])
	}
	for _, obj := range objects {
		again := obj.DeepCopyObject()
		again.(metav1.Object).SetName("watched")
		if _, err := w.server.Create(t.Context(), again); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	for gvr := range objects {
		for i, l := range all {
			theirs := slices.IndexFunc(all, func(first library) bool { return first.form == l.form })
			ours, want := content(t, factories[i].ForResource(gvr).Informer()), content(t, factories[theirs].ForResource(gvr).Informer())
			if len(ours) < 2 || !reflect.DeepEqual(ours, want) {
				t.Errorf("of %s %s holds %v, and %s %v", gvr.Resource, l.name, ours, all[theirs].name, want)
			}
		}
	}
}

// content is what an informer has cached, by key.
func content(t *testing.T, informer cache.SharedIndexInformer) map[string]any {
	t.Helper()
	content := map[string]any{}
	for _, key := range informer.GetStore().ListKeys() {
		obj, _, err := informer.GetStore().GetByKey(key)
		if err != nil {
			t.Fatal(err)
		}
		content[key] = obj
	}
	return content
}

// TestOwnSourceReads asks of each library of ours who has decoded the objects: our source,
// or the client that was given.
func TestOwnSourceReads(t *testing.T) {
	for i, l := range withServer() {
		if strings.HasPrefix(l.name, "client-go's") {
			continue
		}
		t.Run(l.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newServer(t)
				for _, name := range []string{"one", "two", "three"} {
					w.create(t, widgets, widget("a", name, "red"))
				}
				f := l.factory(w.clients(t), 0)
				informer := f.ForResource(widgets).Informer()
				start(t, f)
				health, ok := tidingscache.HealthOf(informer)
				if !ok {
					t.Fatal("the informer is none of this module")
				}
				own := i >= len(libraries)
				if d := health.Decoding; (d.Shared >= 3) != own || (d.After.Shared >= 3) == own {
					t.Errorf("health has %+v; read with our source: %t", d, own)
				}
			})
		})
	}
}

// TestNotInAPath asks for namespaces that cannot stand in a path: what becomes of that is
// what becomes of it with client-go's informers, which refuse it or send it as it is.
func TestNotInAPath(t *testing.T) {
	for _, namespace := range []string{"a/b", "%2e", ".."} {
		t.Run(strings.ReplaceAll(namespace, "/", " "), func(t *testing.T) {
			theirs := map[form]string{}
			eachWithServer(t, func(t *testing.T, l library) {
				w := newServer(t)
				w.create(t, widgets, widget("a", "one", "red"))
				var first string
				w.saw = func(r *http.Request) {
					if first == "" {
						first = r.URL.EscapedPath()
					}
				}
				f := l.filtered(w.clients(t), 0, namespace, nil)
				informer := f.ForResource(widgets).Informer()
				start(t, f)
				got := fmt.Sprintf("asks for %q, synced %t", first, informer.HasSynced())
				want, ok := theirs[l.form]
				if !ok {
					theirs[l.form] = got
				} else if got != want {
					t.Errorf("it %s, client-go's %s", got, want)
				}
			})
		})
	}
}

// TestNoOtherRequests follows a resource in one namespace: lists and watches are all that a
// server is asked for, with our source as without.
func TestNoOtherRequests(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		var paths []string
		w.saw = func(r *http.Request) { paths = append(paths, r.URL.Path) }
		w.create(t, widgets, widget("b", "one", "red"))
		f := l.filtered(w.clients(t), 0, "b", nil)
		r := record(t, l, f.ForResource(widgets).Informer())
		start(t, f)
		r.check("initial add b/one red")
		for _, path := range paths {
			if path != "/apis/example.com/v1/namespaces/b/widgets" {
				t.Errorf("the server was asked for %s", path)
			}
		}
		if len(paths) == 0 {
			t.Error("the server was asked for nothing")
		}
	})
}

// TestForbidden: watch error handlers are told what the server says, in the form in which
// programs ask for it.
func TestForbidden(t *testing.T) {
	eachWithServer(t, func(t *testing.T, l library) {
		w := newServer(t)
		w.answer = http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(http.StatusForbidden)
			fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"not you","reason":"Forbidden","code":403}`)
		})
		f := l.factory(w.clients(t), 0)
		told := failuresOf(t, f.ForResource(widgets).Informer())
		start(t, f)
		if err := told(); !apierrors.IsForbidden(err) {
			t.Errorf("the watch error handler is told %v", err)
		}
	})
}
