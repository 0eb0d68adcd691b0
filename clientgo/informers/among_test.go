package informers

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings"
	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/source"
)

// TestWithSharingAmong has two factories and an informer of its own share, by a clientset's
// REST client and through a fake's typed methods; without the option they do not.
func TestWithSharingAmong(t *testing.T) {
	for _, table := range []*source.Table{new(source.Table), nil} {
		for name, newClient := range map[string]func(t *testing.T) kubernetes.Interface{
			"rest": func(t *testing.T) kubernetes.Interface {
				server, client := newServer(t)
				for n := range 8 {
					create(t, server, replica(metav1.NamespaceDefault, n))
				}
				return client
			},
			"fake": func(*testing.T) kubernetes.Interface {
				client := fake.NewClientset()
				for n := range 8 {
					if err := client.Tracker().Add(replica(metav1.NamespaceDefault, n)); err != nil {
						t.Fatal(err)
					}
				}
				return client
			},
		} {
			t.Run(fmt.Sprintf("%s with a table %t", name, table != nil), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := newClient(t)
					among := WithSharingAmong(table) // one option for all
					single := NewFor[*corev1.Pod](client, "", InformerOptions{}, among)
					run(t, single)
					informers := []cache.SharedIndexInformer{single}
					for range 2 {
						f := NewSharedInformerFactoryWithOptions(client, 0, among)
						informers = append(informers, f.Core().V1().Pods().Informer())
						start(t, f)
					}
					synctest.Wait()
					first := cachedPod(t, informers[0], 7)
					for _, informer := range informers[1:] {
						if inCommon(first, cachedPod(t, informer, 7)) != (table != nil) {
							t.Errorf("pods of two informers have labels and containers in common: %t", table == nil)
						}
					}
				})
			})
		}
	}
}

// TestNewForOptions gives an informer of its own the options of a factory.
func TestNewForOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := newServer(t)
		other := heavy("other")
		other.Namespace = metav1.NamespaceSystem
		create(t, server, heavy("one"), heavy("two"), other)
		mark := func(obj any) (any, error) {
			obj.(*corev1.Pod).Annotations["marked"] = "yes"
			return obj, nil
		}
		pods := NewFor[*corev1.Pod](client, metav1.NamespaceSystem, InformerOptions{ResyncPeriod: time.Minute},
			WithDrop("metadata.managedFields"), WithDropFor[*corev1.Pod]("spec.containers.env"),
			WithTransform(mark), WithSharing(tidings.ShareNothing),
			WithNamespace(metav1.NamespaceDefault), WithCustomResyncConfig(map[metav1.Object]time.Duration{&corev1.Pod{}: 0}))
		resyncs := 0
		if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { resyncs++ }}); err != nil {
			t.Fatal(err)
		}
		run(t, pods)
		checkKeys(t, pods.GetStore(), "default/one", "default/two")
		obj, _, err := pods.GetStore().GetByKey("default/one")
		if err != nil {
			t.Fatal(err)
		}
		if pod := obj.(*corev1.Pod); pod.ManagedFields != nil || pod.Spec.Containers[0].Env != nil || pod.Annotations["marked"] != "yes" {
			t.Errorf("cached is %+v", pod)
		}
		health, ok := tidingscache.HealthOf(pods)
		if !ok || health.Decoding.Shared != 0 || health.Decoding.After.Shared != 0 {
			t.Errorf("health has %+v", health.Decoding)
		}
		advance(t, 10*time.Minute)
		if resyncs != 0 {
			t.Errorf("%d resyncs, which the options turn off", resyncs)
		}
	})
}
