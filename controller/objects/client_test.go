package objects_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/controller/objects"
	shopv1 "github.com/tidings-go/tidings/examples/clientgo/customtype/apis/shop/v1"
)

// TestClientOfACustomType makes each kind of request for a type that no client is generated for.
func TestClientOfACustomType(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		gv := shopv1.SchemeGroupVersion
		fatal(t, server.Register(apisim.Resource{
			Group: gv.Group, Version: gv.Version, Name: "widgets", Kind: "Widget", Namespaced: true,
			HasStatus: true,
		}))
		types := runtime.NewScheme()
		types.AddKnownTypes(gv, &shopv1.Widget{}) // and nothing else
		config := server.Config()
		config.ContentType = runtime.ContentTypeProtobuf
		client, err := objects.NewClient[*shopv1.Widget](config, types, "widgets")
		fatal(t, err)
		widgets := client.In("default")
		made, err := widgets.Create(t.Context(), &shopv1.Widget{
			ObjectMeta: metav1.ObjectMeta{Name: "gear"}, Spec: shopv1.WidgetSpec{Pieces: 3},
		}, metav1.CreateOptions{FieldManager: "test"})
		fatal(t, err)
		if made.Spec.Pieces != 3 || made.UID == "" {
			t.Errorf("created: %+v", made)
		}
		events, err := widgets.Watch(t.Context(), metav1.ListOptions{ResourceVersion: made.ResourceVersion})
		fatal(t, err)
		with, err := objects.AddFinalizer(t.Context(), widgets, made, finalizer)
		fatal(t, err)
		done, err := objects.UpdateStatus(t.Context(), widgets, with, func(w *shopv1.Widget) { w.Status.Made = 3 })
		fatal(t, err)
		if done.Status.Made != 3 || len(done.Finalizers) != 1 {
			t.Errorf("with a status and a finalizer: %+v", done)
		}
		_, err = objects.UpdateStatus(t.Context(), widgets, with, func(w *shopv1.Widget) { w.Status.Made = 2 })
		if !apierrors.IsConflict(err) {
			t.Errorf("the object is of an earlier version, and the error is %v", err)
		}
		done.Spec.Pieces = 4
		done, err = widgets.Update(t.Context(), done, metav1.UpdateOptions{})
		fatal(t, err)
		without, err := objects.RemoveFinalizer(t.Context(), widgets, done, finalizer)
		fatal(t, err)
		if without.Spec.Pieces != 4 || len(without.Finalizers) != 0 {
			t.Errorf("updated, without a finalizer: %+v", without)
		}
		fatal(t, widgets.Delete(t.Context(), "gear", metav1.DeleteOptions{}))
		if _, err := widgets.Get(t.Context(), "gear", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the object is gone, and the error is %v", err)
		}
		for _, want := range []watch.EventType{watch.Modified, watch.Modified, watch.Modified, watch.Modified, watch.Deleted} {
			if e := <-events.ResultChan(); e.Type != want || e.Object.(*shopv1.Widget).Name != "gear" {
				t.Errorf("the watch has brought %s of %T, want %s", e.Type, e.Object, want)
			}
		}
		events.Stop()
	})
}

// TestClientThatApplies applies the configurations of a type.
func TestClientThatApplies(t *testing.T) {
	serve(t, func(t *testing.T, server *apisim.Server, _ *corev1.ConfigMap) {
		client, err := objects.NewClient[*corev1.ConfigMap](server.Config(), clientscheme.Scheme, "configmaps")
		fatal(t, err)
		resource := objects.ApplyIn[*applycorev1.ConfigMapApplyConfiguration](client, "default")
		wanted := applycorev1.ConfigMap("applied", "default").WithData(map[string]string{"a": "b"})
		made, err := objects.Apply(t.Context(), resource, "test", wanted, nil, applycorev1.ExtractConfigMap)
		fatal(t, err)
		server.ForgetRequests()
		again, err := objects.Apply(t.Context(), resource, "test", wanted, made, applycorev1.ExtractConfigMap)
		fatal(t, err)
		if made.Data["a"] != "b" || again != made || writes(server) != 0 {
			t.Errorf("applied %v, and then %d writes", made.Data, writes(server))
		}
	})
}

// TestClientsThatAreRefused.
func TestClientsThatAreRefused(t *testing.T) {
	config := &rest.Config{Host: "http://localhost"}
	for want, err := range map[string]error{
		"objects: NewClient[*v1.Widget]: the type is not in the scheme: add it with the AddToScheme":        errOf(objects.NewClient[*shopv1.Widget](config, clientscheme.Scheme, "widgets")),
		`objects: NewClient[*v1.Pod]: the resource is empty: give its plural name, as in "widgets"`:         errOf(objects.NewClient[*corev1.Pod](config, clientscheme.Scheme, "")),
		"objects: NewClient[*v1.Pod]: the rest.Config or the scheme is nil":                                 errOf(objects.NewClient[*corev1.Pod](nil, clientscheme.Scheme, "pods")),
		"objects: NewClient[objects.Object]: a pointer to an API type is needed, such as *corev1.Pod":       errOf(objects.NewClient[objects.Object](config, clientscheme.Scheme, "pods")),
		"objects: NewClient[*unstructured.Unstructured]: a map can be of any type: use client-go's dynamic": errOf(objects.NewClient[*unstructured.Unstructured](config, clientscheme.Scheme, "pods")),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func errOf(_ any, err error) error { return err }
