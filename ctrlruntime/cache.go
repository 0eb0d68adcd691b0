package ctrlruntime

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
)

// NewCache is controller-runtime's cache.New with the informers of this module. It is the value
// of ctrl.Options.NewCache:
//
//	mgr, err := ctrl.NewManager(config, ctrl.Options{NewCache: ctrlruntime.NewCache})
//
// All options have the same meaning there. With opts.NewInformer the informers are those of the
// option, as with cache.New. Reads of a client of [NewClient] wait for writes if they are drop-in
// informers.
//
// An informer that does less than it otherwise would is logged once, to the logger of
// ctrl.SetLogger. The field Fallback of its health says why.
func NewCache(config *rest.Config, opts cache.Options) (cache.Cache, error) {
	httpClient, err := httpClientOf(config, opts.HTTPClient)
	if err != nil {
		return cache.New(config, opts) // this has the same error with controller-runtime's text
	}
	if opts.Scheme == nil {
		opts.Scheme = scheme.Scheme // as cache.New does
	}
	set := &InformerSet{scheme: opts.Scheme, unknown: map[kindKey]bool{}}
	r := newReader(config, httpClient, set)
	given := opts.NewInformer
	opts.HTTPClient = probed(httpClient)
	opts.NewInformer = func(lw toolscache.ListerWatcher, example runtime.Object,
		resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
		readable, key := r.readable(lw, example)
		if given != nil {
			of := given(r.newest(lw), example, resync, indexers)
			key.fallback = fmt.Sprintf("it is a %T of the option NewInformer", of)
			set.add(of, key)
			return of
		}
		of := tidingscache.NewSharedIndexInformerWithOptions(readable, example,
			toolscache.SharedIndexInformerOptions{
				ResyncPeriod: resync, Indexers: indexers, ObjectDescription: key.name,
			})
		set.add(of, key)
		return newInformer(of)
	}
	of, err := cache.New(unlimited(config), opts)
	if err != nil {
		return nil, err
	}
	return &wrapper{of, set, given != nil}, nil
}

// wrapper is controller-runtime's cache with List by labels.
type wrapper struct {
	cache.Cache
	informers *InformerSet
	isGiven   bool // the option NewInformer has made them, and they know no List by labels
}

// List lists objects as controller-runtime's cache does.
func (w *wrapper) List(ctx context.Context, list client.ObjectList,
	opts ...client.ListOption) error {
	if w.isGiven {
		return w.Cache.List(ctx, list, opts...)
	}
	return w.Cache.List(ctx, list, byLabels(opts)...)
}

// RemoveInformer stops the informers of an object's type and form. Reads no longer wait for them.
// That includes informers that were never started, which never stop.
func (w *wrapper) RemoveInformer(ctx context.Context, obj client.Object) error {
	present := w.informers.members()
	if err := w.Cache.RemoveInformer(ctx, obj); err != nil {
		return err
	}
	kind, err := apiutil.GVKForObject(obj, w.informers.scheme)
	if err != nil {
		return err
	}
	w.informers.forget(slices.DeleteFunc(present, func(m *member) bool {
		return m.kind != kind || m.form != formOf(obj)
	}))
	return nil
}

// NeedLeaderElection reports whether a manager starts the cache only as the leader. A cache
// without this method, such as one of several namespaces, needs the election.
func (w *wrapper) NeedLeaderElection() bool {
	of, ok := w.Cache.(interface{ NeedLeaderElection() bool })
	return !ok || of.NeedLeaderElection()
}
