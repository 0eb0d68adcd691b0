package informers

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/tidings-go/tidings/apisim"
)

// heavy returns a pod that has fields to be left out.
func heavy(name string) *corev1.Pod {
	p := pod(metav1.NamespaceDefault, name, "web")
	p.Annotations = map[string]string{"a": name}
	p.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "test", Operation: "Update"}}
	p.Spec.Containers = []corev1.Container{{Name: "app", Image: "example.com/app:v1", Env: []corev1.EnvVar{{Name: "A", Value: name}}}}
	return p
}

// TestWithDrop reads pods and another type by a clientset's REST client, and by the typed
// methods of a fake one.
func TestWithDrop(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: map[string]string{"a": "n"}}, Spec: corev1.NodeSpec{ProviderID: "p"}}
	clients := map[string]func(t *testing.T) (kubernetes.Interface, func()){
		"rest": func(t *testing.T) (kubernetes.Interface, func()) {
			server, client := newServer(t)
			create(t, server, heavy("listed"), node)
			return client, func() { create(t, server, heavy("watched")) }
		},
		"fake": func(t *testing.T) (kubernetes.Interface, func()) {
			client := fake.NewClientset(heavy("listed"), node)
			return client, func() {
				if _, err := client.CoreV1().Pods(metav1.NamespaceDefault).Create(t.Context(), heavy("watched"), metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		},
	}
	for name, newClient := range clients {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, more := newClient(t)
				var saw atomic.Int64
				f := NewSharedInformerFactoryWithOptions(client, 0,
					WithDrop("metadata.annotations"), WithDropFor[*corev1.Pod]("spec.containers.env"), WithDrop("metadata.managedFields"),
					WithTransform(func(obj any) (any, error) {
						saw.Add(int64(len(obj.(metav1.Object).GetAnnotations())))
						return obj, nil
					}))
				pods, nodes := f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer()
				start(t, f)
				more()
				synctest.Wait()
				for _, name := range []string{"listed", "watched"} {
					obj, ok, err := pods.GetStore().GetByKey("default/" + name)
					if err != nil || !ok {
						t.Fatalf("%s is not cached: %v", name, err)
					}
					got := obj.(*corev1.Pod)
					if got.Annotations != nil || got.ManagedFields != nil || got.Spec.Containers[0].Env != nil {
						t.Errorf("cached is %+v, which has what is left out", got)
					}
					if got.Labels["app"] != "web" || got.Spec.Containers[0].Image == "" {
						t.Errorf("cached is %+v, which lacks what is not left out", got)
					}
				}
				obj, ok, err := nodes.GetStore().GetByKey("n")
				if err != nil || !ok {
					t.Fatalf("the node is not cached: %v", err)
				}
				if got := obj.(*corev1.Node); got.Annotations != nil || got.Spec.ProviderID != "p" {
					t.Errorf("cached is %+v", got)
				}
				if saw.Load() != 0 {
					t.Error("the transform saw what is left out")
				}
			})
		})
	}
}

// TestWithDropForGroup leaves a field out of custom resources that are read with our own
// source, in JSON.
func TestWithDropForGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		if err := server.Register(apisim.Resource{Group: widgetVersion.Group, Version: widgetVersion.Version, Name: "widgets", Kind: "widget", Namespaced: true}); err != nil {
			t.Fatal(err)
		}
		one := unstructuredWidget(metav1.NamespaceDefault, "one", "web")
		one.SetAnnotations(map[string]string{"a": "b"})
		create(t, server, one)
		scheme := runtime.NewScheme()
		scheme.AddKnownTypes(widgetVersion, &widget{}, &widgetList{})
		metav1.AddToGroupVersion(scheme, widgetVersion)
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(widgetVersion.WithKind("widget"), meta.RESTScopeNamespace)
		f := NewSharedInformerFactoryWithOptions(nil, 0, WithDropFor[*widget]("metadata.labels"), WithDrop("metadata.finalizers"))
		group, err := ForGroup(f, widgetClient(nil), newWidgets, GroupOptions{Scheme: scheme, Mapper: mapper, Config: server.Config()})
		if err != nil {
			t.Fatal(err)
		}
		informer := group.Informer()
		start(t, f)
		obj, ok, err := informer.GetStore().GetByKey("default/one")
		if err != nil || !ok {
			t.Fatalf("the widget is not cached: %v", err)
		}
		if w := obj.(*widget); w.Labels != nil || w.Annotations["a"] != "b" {
			t.Errorf("cached is %+v", w)
		}
	})
}

func TestWithDropPanics(t *testing.T) {
	for name, test := range map[string]struct {
		option func()
		says   []string
	}{
		"not of every type": {func() { WithDrop("metadata.managedFields", "spec.containers") }, []string{`"spec.containers"`, "WithDropFor"}},
		"unknown metadata":  {func() { WithDrop("metadata.managed") }, []string{`"metadata.managed"`, "managedFields"}},
		"identity":          {func() { WithDrop("metadata.uid") }, []string{`"metadata.uid"`, "told apart"}},
		"unknown field":     {func() { WithDropFor[*appsv1.Deployment]("spec.containers") }, []string{"*v1.Deployment", `"spec.containers"`, "v1.DeploymentSpec", "template"}},
		"into a map":        {func() { WithDropFor[*corev1.Pod]("metadata.labels.app") }, []string{"*v1.Pod", "a map"}},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				text := fmt.Sprint(recover())
				for _, says := range append(test.says, "informers.WithDrop") {
					if !strings.Contains(text, says) {
						t.Errorf("the panic %q does not say %q", text, says)
					}
				}
			}()
			test.option()
		})
	}
}
