package cache_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
	"github.com/tidings-go/tidings/clientgo/cache"
)

// newServer starts a server with two config maps in two namespaces.
func newServer(t *testing.T) *apisim.Server {
	t.Helper()
	server := apisim.Start(t)
	_, err := server.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	must(t, err)
	for _, namespace := range []string{"default", "other"} {
		_, err = server.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a", Labels: map[string]string{"n": namespace}}})
		must(t, err)
	}
	return server
}

// TestListerWatchersOfServer reads a server through the lister and watchers for which
// client-go has functions. Those of clients are tested with the factories.
func TestListerWatchersOfServer(t *testing.T) {
	ofREST := func(server *apisim.Server) (clientgo.Getter, error) {
		client, err := kubernetes.NewForConfig(server.Config())
		if err != nil {
			return nil, err
		}
		return client.CoreV1().RESTClient(), nil
	}
	for _, tt := range []struct {
		name string
		lw   func(*apisim.Server) (clientgo.ListerWatcher, error)
		want []string
	}{
		{"NewListWatchFromClient", func(server *apisim.Server) (clientgo.ListerWatcher, error) {
			client, err := ofREST(server)
			return cache.NewListWatchFromClient(client, "configmaps", "other", fields.Everything()), err
		}, []string{"other/a"}},
		{"NewFilteredListWatchFromClient", func(server *apisim.Server) (clientgo.ListerWatcher, error) {
			client, err := ofREST(server)
			return cache.NewFilteredListWatchFromClient(client, "configmaps", "", func(o *metav1.ListOptions) { o.LabelSelector = "n=default" }), err
		}, []string{"default/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			both(t, func(t *testing.T, newInformer newInformerFunc) {
				server := newServer(t)
				lw, err := tt.lw(server)
				must(t, err)
				informer := newInformer(lw, &corev1.ConfigMap{}, noOptions)
				handler := record(t, informer)
				run(t, informer)
				time.Sleep(time.Second)
				waitForSync(t, informer)
				wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil, tt.want...)
				handler.take()

				namespace, name, err := cache.SplitMetaNamespaceKey(tt.want[0])
				must(t, err)
				_, err = server.Delete(t.Context(), configMaps, namespace, name)
				must(t, err)
				settle(time.Second)
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
		settle(2 * time.Minute)
		wantKeys(t, "ListKeys", informer.GetStore().ListKeys(), nil)
		same(t, "the watch error handler was told", len(told.take()), 0)
	})
}
