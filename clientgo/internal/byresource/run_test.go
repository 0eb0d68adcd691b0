package byresource_test

import (
	"context"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/tidings-go/tidings/clientgo/internal/byresource"
)

// counted is an informer that counts how often it is run, which a real one would only
// log the second time.
type counted struct {
	cache.SharedIndexInformer
	runs chan context.Context
}

func (c counted) RunWithContext(ctx context.Context) {
	c.runs <- ctx
	<-ctx.Done()
}

func (c counted) Informer() cache.SharedIndexInformer { return c }

func (c counted) Lister() cache.GenericLister { return nil }

// TestFactoryRunsOnce makes and runs an informer once, however often it is asked for and
// started, with the context of the first start.
func TestFactoryRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, made := make(chan context.Context, 10), 0
		f := byresource.New(func(schema.GroupVersionResource) informers.GenericInformer {
			made++
			return counted{runs: runs}
		})
		first, cancel := context.WithCancel(t.Context())
		for range 3 {
			f.ForResource(widgets)
			f.StartWithContext(first)
			f.Start(t.Context().Done())
		}
		synctest.Wait()
		if made != 1 || len(runs) != 1 || <-runs != first {
			t.Errorf("the informer was made %d times, want once, and run once, with the first context", made)
		}
		cancel()
		f.Shutdown()
	})
}

// failuresOf returns what gives the first error that an informer's watch error handler is
// told.
func failuresOf(t *testing.T, informer cache.SharedIndexInformer) func() error {
	t.Helper()
	told := make(chan error, 1)
	err := informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		select {
		case told <- err:
		default:
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		select {
		case err := <-told:
			return err
		default:
			return nil
		}
	}
}
