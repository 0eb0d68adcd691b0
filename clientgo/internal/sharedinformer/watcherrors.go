package sharedinformer

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/engine/delta"
	"github.com/tidings-go/tidings/internal/engine/reflector"
)

// watchErrorsTo returns a function for the failures of a reflector. It calls the handler where
// client-go's ListAndWatch returns an error: when a list fails, and when a watch cannot be
// opened, unless the connection is refused or the server answers 429. An error that ends an
// open watch is not reported. Without a handler the result is nil.
func (i *Informer) watchErrorsTo(ctx context.Context,
	handler cache.WatchErrorHandlerWithContext) func(reflector.Step, error) {
	if handler == nil {
		return nil
	}
	w := &watchErrors{informer: i, ctx: ctx, handler: handler}
	i.watchErrors = w
	return func(ended reflector.Step, err error) {
		switch {
		case ended == reflector.PagedList:
		case ended == reflector.OpenWatch && !utilnet.IsConnectionRefused(err) && !apierrors.IsTooManyRequests(err):
		default:
			return
		}
		w.handle(err)
	}
}

// reportUndecodable calls the watch error handler once for each object whose state cannot be
// decoded any more.
func (i *Informer) reportUndecodable(states []delta.Unusable) {
	i.mu.Lock()
	w := i.watchErrors
	i.mu.Unlock()
	if w == nil {
		return
	}
	states = slices.Clone(states)
	i.reports.call(func() {
		for _, state := range states {
			w.handle(state.Err)
		}
	})
}

// watchErrors calls a watch error handler, and makes the cache.Reflector that it receives.
type watchErrors struct {
	informer *Informer
	ctx      context.Context
	handler  cache.WatchErrorHandlerWithContext

	mu      sync.Mutex       // held while the handler is called; guards the rest
	replica *cache.Reflector // the last one that was made; nil before
	version string           // the version of replica
}

func (w *watchErrors) handle(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler(w.ctx, w.reflector(), err)
}

// reflector returns a cache.Reflector with the version of ours. It never connects to a server:
// it receives its version from an empty list of that version.
func (w *watchErrors) reflector() *cache.Reflector {
	version, name := w.informer.LastSyncResourceVersion(), w.informer.name
	if w.replica != nil && w.version == version {
		return w.replica
	}
	silent := logr.Discard()
	nothing := cache.NewStore(cache.MetaNamespaceKeyFunc)
	w.replica = cache.NewReflectorWithOptions(emptyList{version}, w.informer.o.Example, nothing,
		cache.ReflectorOptions{Name: name, TypeDescription: name, Logger: &silent})
	w.version = version
	if version != "" {
		// The error is errNoWatch.
		_ = w.replica.ListAndWatchWithContext(klog.NewContext(context.Background(), silent))
	}
	return w.replica
}

// errNoWatch is the error of every watch of an emptyList.
var errNoWatch = errors.New("there is nothing to watch")

// emptyList is a cache.ListerWatcher of an empty collection at a version.
type emptyList struct{ version string }

func (l emptyList) List(metav1.ListOptions) (runtime.Object, error) {
	return &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: l.version}}, nil
}

func (emptyList) Watch(metav1.ListOptions) (watch.Interface, error) { return nil, errNoWatch }

// IsWatchListSemanticsUnSupported prevents streamed lists.
func (emptyList) IsWatchListSemanticsUnSupported() bool { return true }
