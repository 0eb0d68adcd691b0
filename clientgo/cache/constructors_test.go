package cache_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/clientgo/cache"
)

// newInformerFunc makes an informer.
type newInformerFunc func(clientgo.ListerWatcher, runtime.Object, clientgo.SharedIndexInformerOptions) clientgo.SharedIndexInformer

// constructors are client-go's and ours. A test that passes with both proves that ours behaves
// as client-go's does.
var constructors = map[string]newInformerFunc{
	"client-go": clientgo.NewSharedIndexInformerWithOptions,
	"tidings":   cache.NewSharedIndexInformerWithOptions,
}

// both runs a test with each constructor of shared informers.
func both(t *testing.T, test func(t *testing.T, newInformer newInformerFunc)) {
	t.Helper()
	each(t, constructors, test)
}

// each runs a test with each constructor, each time in a bubble of its own.
func each[F any](t *testing.T, constructors map[string]F, test func(t *testing.T, newOne F)) {
	t.Helper()
	for name, newOne := range constructors {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) { test(t, newOne) })
		})
	}
}

// bubble runs a test in a bubble, with only the first error handler of utilruntime, which logs.
// The second one sleeps between errors, measured by the clock of the process; in a bubble that
// can be decades.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	all := utilruntime.ErrorHandlers
	utilruntime.ErrorHandlers = all[:1]
	defer func() { utilruntime.ErrorHandlers = all }()
	synctest.Test(t, test)
}

// quiet returns a context that ends with the test and logs nothing.
func quiet(t *testing.T) context.Context {
	return klog.NewContext(t.Context(), logr.Discard())
}

// run starts an informer, or a controller. stop ends it and waits until it has ended. It is
// stopped at the end of the test in any case.
func run(t *testing.T, informer interface{ RunWithContext(context.Context) }) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(quiet(t))
	done := running(ctx, informer)
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return stop
}

// must fails the test for an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// running runs an informer, or a controller, until ctx ends. done is closed when it returns.
func running(ctx context.Context, informer interface{ RunWithContext(context.Context) }) (done <-chan struct{}) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		informer.RunWithContext(ctx)
	}()
	return ended
}
