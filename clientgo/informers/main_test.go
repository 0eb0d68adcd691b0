package informers

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/apisim"
)

// pod returns a pod with the label app.
func pod(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": app},
	}}
}

// start runs the factory's informers until the end of the test, which waits for them, and returns
// when the bubble is idle.
func start(t *testing.T, f SharedInformerFactory) {
	t.Helper()
	f.StartWithContext(runningContext(t, f))
	synctest.Wait()
}

// runningContext returns a context that ends with the test, before the factory is shut
// down.
func runningContext(t *testing.T, f SharedInformerFactory) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		f.Shutdown()
	})
	return ctx
}

// soon returns a context that ends in a minute: in a synctest bubble a wait without end would
// make virtual time run for ever.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// checkKeys compares the keys in a store with those wanted, which are sorted.
func checkKeys(t *testing.T, store cache.Store, want ...string) {
	t.Helper()
	if got := slices.Sorted(slices.Values(store.ListKeys())); !slices.Equal(got, want) {
		t.Errorf("the store has %v, want %v", got, want)
	}
}

// objects makes a slice of runtime objects for fakes.
func objects(pods ...*corev1.Pod) []runtime.Object {
	list := make([]runtime.Object, 0, len(pods))
	for _, p := range pods {
		list = append(list, p)
	}
	return list
}

// reportedErrors returns a counter, for the rest of the test, of the errors of
// utilruntime.HandleError and its like. Call it before anything runs. The handlers that it
// replaces keep the time of the last error. After an error outside of a synctest bubble, where
// the clock is ahead, they would sleep for years inside.
func reportedErrors(t *testing.T) *atomic.Int64 {
	t.Helper()
	count, before := new(atomic.Int64), utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) { count.Add(1) },
	}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	return count
}

// newServer returns a server and a clientset for it.
func newServer(t *testing.T) (*apisim.Server, *kubernetes.Clientset) {
	t.Helper()
	server := apisim.Start(t)
	client, err := kubernetes.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	return server, client
}

// create puts objects on a server.
func create(t *testing.T, server *apisim.Server, objects ...runtime.Object) {
	t.Helper()
	for _, object := range objects {
		if _, err := server.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}
