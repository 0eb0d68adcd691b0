package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
)

// newServer starts a server with two config maps in two namespaces.
func newServer(t *testing.T) *apisim.Server {
	t.Helper()
	server, err := apisim.New(apisim.Options{})
	must(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, namespace := range []string{"default", "other"} {
		if namespace != "default" {
			_, err = server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
			must(t, err)
		}
		_, err = server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: map[string]string{"n": namespace}}})
		must(t, err)
	}
	return server
}

// TestListerWatchersOfServer reads a server through every lister and watcher that
// client-go has a function or a client for.
func TestListerWatchersOfServer(t *testing.T) {
	ofDynamic := func(server *apisim.Server) (clientgo.ListerWatcher, error) {
		client, err := dynamic.NewForConfig(server.Config())
		if err != nil {
			return nil, err
		}
		return &clientgo.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.Resource(configMaps).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.Resource(configMaps).Watch(ctx, o)
			},
		}, nil
	}
	ofMetadata := func(server *apisim.Server) (clientgo.ListerWatcher, error) {
		client, err := metadata.NewForConfig(server.Config())
		if err != nil {
			return nil, err
		}
		return &clientgo.ListWatch{
			ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				return client.Resource(configMaps).List(ctx, o)
			},
			WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
				return client.Resource(configMaps).Watch(ctx, o)
			},
		}, nil
	}
	ofREST := func(server *apisim.Server) (clientgo.Getter, error) {
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			return nil, err
		}
		return client.CoreV1().RESTClient(), nil
	}
	thing := &unstructured.Unstructured{}
	thing.SetAPIVersion("v1")
	thing.SetKind("ConfigMap")
	for _, tt := range []struct {
		name    string
		lw      func(*apisim.Server) (clientgo.ListerWatcher, error)
		example runtime.Object
		want    []string
	}{
		{"NewListWatchFromClient", func(server *apisim.Server) (clientgo.ListerWatcher, error) {
			client, err := ofREST(server)
			return cache.NewListWatchFromClient(client, "configmaps", "other", fields.Everything()), err
		}, &corev1.ConfigMap{}, []string{"other/a"}},
		{"NewFilteredListWatchFromClient", func(server *apisim.Server) (clientgo.ListerWatcher, error) {
			client, err := ofREST(server)
			return cache.NewFilteredListWatchFromClient(client, "configmaps", "", func(o *metav1.ListOptions) { o.LabelSelector = "n=default" }), err
		}, &corev1.ConfigMap{}, []string{"default/a"}},
		{"dynamic", ofDynamic, thing, []string{"default/a", "other/a"}},
		{"dynamic, any kind", ofDynamic, &unstructured.Unstructured{}, []string{"default/a", "other/a"}},
		{"metadata", ofMetadata, &metav1.PartialObjectMetadata{}, []string{"default/a", "other/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := newServer(t)
				lw, err := tt.lw(server)
				must(t, err)
				informer := newInformer(lw, tt.example, noOptions)
				var handler recorder
				addHandler(t, informer, &handler)
				run(t, informer)
				time.Sleep(time.Second)
				waitForSync(t, informer)
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, tt.want...)
				handler.take()

				namespace, name, err := cache.SplitMetaNamespaceKey(tt.want[0])
				must(t, err)
				_, err = server.Delete(t.Context(), configMaps, namespace, name)
				must(t, err)
				time.Sleep(time.Second)
				synctest.Wait()
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, tt.want[1:]...)
				if notes := handler.take(); len(notes) != 1 {
					t.Errorf("the handler was told %q, want one delete", notes)
				}
			})
		})
	}
}

// TestServerUnreachable: while the connection is refused, the watch error handler is not
// called, and afterwards what has changed meanwhile is told.
func TestServerUnreachable(t *testing.T) {
	both(t, func(t *testing.T, newInformer newInformerFunc) {
		server := newServer(t)
		client, err := kubernetes.NewForConfig(server.Config())
		must(t, err)
		informer := newInformer(cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "configmaps", "default", fields.Everything()), &corev1.ConfigMap{}, noOptions)
		var told failures
		must(t, informer.SetWatchErrorHandlerWithContext(told.handle))
		run(t, informer)
		time.Sleep(time.Second)
		waitForSync(t, informer)
		server.SetAvailable(false)
		server.CutConnections()
		_, err = server.Delete(t.Context(), configMaps, "default", "a")
		must(t, err)
		time.Sleep(time.Minute)
		wantKeys(t, "ListKeys without a server", informer.GetStore().ListKeys(), nil, "default/a")
		server.SetAvailable(true)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil)
		if notes := told.take(); len(notes) > 0 {
			t.Errorf("the watch error handler was told %q", notes)
		}
	})
}
