package ctrlruntime

import (
	"context"
	"fmt"
	"iter"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidings-go/tidings"
)

// managing is what [NewFactory] needs of a manager of controller-runtime, whose package this one
// does not import: `make upstream` makes packages below it import this one. R is manager.Runnable.
type managing[R starting] interface {
	GetConfig() *rest.Config
	GetHTTPClient() *http.Client
	GetRESTMapper() meta.RESTMapper
	GetScheme() *runtime.Scheme
	Add(R) error
}

// starting has the method of manager.Runnable.
type starting interface {
	Start(ctx context.Context) error
}

// NewFactory returns a factory of informers that read beside the cache of a manager, such as
// [tidings.View]: with its configuration, HTTP client, mapper and scheme. The manager starts it with
// its caches, waits until its informers are synced, and shuts it down. Ask it for informers before
// the manager starts.
func NewFactory[R starting](mgr managing[R], o tidings.FactoryOptions) (*tidings.Factory, error) {
	o.HTTPClient, o.Mapper, o.Scheme = mgr.GetHTTPClient(), mgr.GetRESTMapper(), mgr.GetScheme()
	factory, err := tidings.NewFactory(mgr.GetConfig(), o)
	if err != nil {
		return nil, fmt.Errorf("ctrlruntime: NewFactory: %w", err)
	}
	var run starting = &running{factory: factory, started: make(chan struct{})}
	return factory, mgr.Add(run.(R))
}

// running runs a factory for a manager, which takes it for a cluster because it has a cache. Of
// that, the manager calls WaitForCacheSync alone.
type running struct {
	cache.Cache // nil
	factory     *tidings.Factory
	started     chan struct{} // closed when the factory is
}

// GetCache returns what the manager waits for.
func (r *running) GetCache() cache.Cache { return r }

// Start runs the factory until ctx ends.
func (r *running) Start(ctx context.Context) error {
	if err := r.factory.Start(ctx); err != nil {
		return err
	}
	close(r.started)
	<-ctx.Done()
	return r.factory.Shutdown(context.WithoutCancel(ctx)) // within the grace of the informers
}

// WaitForCacheSync waits until the informers are synced.
func (r *running) WaitForCacheSync(ctx context.Context) bool {
	select {
	case <-r.started:
		return r.factory.WaitForSync(ctx) == nil
	case <-ctx.Done():
		return false
	}
}

// Source returns a source for WatchesRawSource: each change of an object of the informer leads to
// the requests that requests returns for its states before and after. The controller waits until
// the informer is synced.
func Source[T tidings.Object](
	informer *tidings.Informer[T], requests func(T) iter.Seq[reconcile.Request],
) source.SyncingSource {
	return &informerSource[T]{informer: informer, requests: requests}
}

type informerSource[T tidings.Object] struct {
	informer *tidings.Informer[T]
	requests func(T) iter.Seq[reconcile.Request]
}

// Start adds a handler until ctx ends.
func (s *informerSource[T]) Start(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request],
) error {
	if s.requests == nil {
		return fmt.Errorf("ctrlruntime: Source of %s: the function is nil", s.informer.Name())
	}
	enqueue := func(object T) {
		for request := range s.requests(object) {
			queue.Add(request)
		}
	}
	registration, err := s.informer.AddHandler(tidings.HandlerFunc[T](func(e tidings.Event[T]) {
		if e.Type != tidings.Added {
			enqueue(e.Old)
		}
		if e.Type != tidings.Deleted {
			enqueue(e.New)
		}
	}), tidings.HandlerOptions{Name: "source", IsolatePanics: true})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, registration.Remove)
	return nil
}

// WaitForSync waits until the informer is synced.
func (s *informerSource[T]) WaitForSync(ctx context.Context) error {
	return s.informer.WaitForSync(ctx)
}

// String names the informer in the log.
func (s *informerSource[T]) String() string { return "informer source: " + s.informer.Name() }
