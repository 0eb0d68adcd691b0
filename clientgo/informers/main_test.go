package informers

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
)

// pod returns a pod with the label app.
func pod(namespace, name, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{"app": app},
	}}
}

// start runs the factory's informers until the end of the test, which waits for them,
// and returns when all there is to do has been done.
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

// soon returns a context that ends in a minute: in a synctest bubble a wait without end
// would let virtual time run for ever.
func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// run runs an informer that no factory has until the end of the test.
func run(t *testing.T, informer cache.SharedIndexInformer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	synctest.Wait()
}

// keys returns the keys in a store as a set.
func keys(store cache.Store) map[string]bool {
	set := map[string]bool{}
	for _, key := range store.ListKeys() {
		set[key] = true
	}
	return set
}

// checkKeys compares the keys in a store with those wanted.
func checkKeys(t *testing.T, store cache.Store, want ...string) {
	t.Helper()
	got := keys(store)
	if len(got) != len(want) {
		t.Errorf("the store has %v, want %v", got, want)
		return
	}
	for _, key := range want {
		if !got[key] {
			t.Errorf("the store has %v, want %v", got, want)
			return
		}
	}
}

// objects makes a slice of runtime objects, as fakes take them.
func objects(pods ...*corev1.Pod) []runtime.Object {
	list := make([]runtime.Object, 0, len(pods))
	for _, p := range pods {
		list = append(list, p)
	}
	return list
}

// reports counts errors.
type reports struct {
	mu     sync.Mutex
	errors int
}

func (r *reports) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.errors
}

// reportedErrors counts, until the end of the test, what is reported through
// utilruntime.HandleError and its like. Call it before anything runs. The handlers that
// it takes the place of remember the time of the last error, so that after one outside
// of a synctest bubble, where it is later, they would sleep for years inside.
func reportedErrors(t *testing.T) *reports {
	t.Helper()
	r := &reports{}
	before := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.errors++
		},
	}
	t.Cleanup(func() { utilruntime.ErrorHandlers = before })
	return r
}
