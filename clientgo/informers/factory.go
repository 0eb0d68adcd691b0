package informers

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// factory is the SharedInformerFactory of this package. Every informer that is started
// runs in a goroutine of the factory's, which ends with the context that it was started
// with; Shutdown waits for it.
type factory struct {
	client        kubernetes.Interface
	namespace     string
	tweak         internalinterfaces.TweakListOptionsFunc
	transform     cache.TransformFunc
	defaultResync time.Duration
	customResync  map[reflect.Type]time.Duration
	informerName  *cache.InformerName
	decoding      decoding
	drop          drops

	running sync.WaitGroup // a count for each informer's goroutine

	mu           sync.Mutex // guards what follows
	informers    map[reflect.Type]*member
	shuttingDown bool
}

var _ SharedInformerFactory = (*factory)(nil)

// member is an informer of a factory.
type member struct {
	informer cache.SharedIndexInformer
	started  bool
}

// InformerName returns the name under which the informers are counted in metrics, nil
// without one.
func (f *factory) InformerName() *cache.InformerName { return f.informerName }

// InformerFor returns the informer of the type of obj. Unless there is one, it is what
// newFunc makes of the factory's client and the resync period for that type.
//
// newFunc is called with the factory locked: it must not call the factory.
func (f *factory) InformerFor(obj runtime.Object, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	goType := reflect.TypeOf(obj)
	if known, ok := f.informers[goType]; ok {
		return known.informer
	}
	informer := f.made(goType, newFunc)
	f.informers[goType] = &member{informer: informer}
	return informer
}

// made returns what newFunc makes for a type, with the factory's transform.
func (f *factory) made(goType reflect.Type, newFunc internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	resync, ok := f.customResync[goType]
	if !ok {
		resync = f.defaultResync
	}
	informer := newFunc(f.client, resync)
	if f.transform != nil {
		if err := informer.SetTransform(f.transform); err != nil {
			utilruntime.HandleErrorWithContext(context.Background(), err,
				"The informer factory's transform does not apply to an informer: have InformerFor's function return one that is not started",
				"type", goType)
		}
	}
	return informer
}

// ForResource returns the shared informer of a resource of Kubernetes' own API and a
// lister over it. Any other resource is an error.
func (f *factory) ForResource(gvr schema.GroupVersionResource) (GenericInformer, error) {
	r, ok := resourceFor(gvr)
	if !ok {
		return nil, fmt.Errorf("no informer found for %v: it is no resource of the Kubernetes API that this version of client-go has; "+
			"for a custom resource use package dynamicinformer or tidings.Dynamic", gvr)
	}
	return &genericInformer{informer: r.goType.typed(f.builtin(r)), resource: gvr.GroupResource()}, nil
}

// decodingOf returns what becomes of the objects of a type when they are decoded.
func (f *factory) decodingOf(example runtime.Object) decoding {
	decode := f.decoding
	decode.drop = f.drop.of(example)
	return decode
}

// builtin returns the shared informer of a resource of the table.
func (f *factory) builtin(r *resource) cache.SharedIndexInformer {
	return f.InformerFor(r.goType.example(), f.newFunc(r, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
}

// own returns an informer of a resource of the table that is not shared.
func (f *factory) own(r *resource, indexers cache.Indexers) cache.SharedIndexInformer {
	return f.made(reflect.TypeOf(r.goType.example()), f.newFunc(r, indexers))
}

// newFunc returns what makes an informer of a resource of the table.
func (f *factory) newFunc(r *resource, indexers cache.Indexers) internalinterfaces.NewInformerFunc {
	return func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
		return r.newInformer(client, f.namespace, internalinterfaces.InformerOptions{
			ResyncPeriod:     resync,
			Indexers:         indexers,
			InformerName:     f.informerName,
			TweakListOptions: f.tweak,
		}, f.decodingOf(r.goType.example()))
	}
}

// Start is StartWithContext with a channel that is closed to stop the informers.
func (f *factory) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext runs every informer that was asked for and is not started yet, until
// the context ends. It does not wait for them, and does nothing after Shutdown. An
// informer is started once: one whose context has ended is not started again.
func (f *factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shuttingDown {
		return
	}
	for _, m := range f.informers {
		if m.started {
			continue
		}
		m.started = true
		f.running.Go(func() { m.informer.RunWithContext(ctx) })
	}
}

// Shutdown keeps further informers from being started, waits until those that are have
// ended, and releases the informer name. What they were started with has to be ended by
// the caller, before or meanwhile. It may be called more than once, from any goroutine.
func (f *factory) Shutdown() {
	f.mu.Lock()
	f.shuttingDown = true
	f.mu.Unlock()
	f.running.Wait()
	f.informerName.Release()
}

// WaitForCacheSync is WaitForCacheSyncWithContext with a channel that is closed to give
// up. It returns, by type, whether the informers that were started are in sync.
func (f *factory) WaitForCacheSync(stopCh <-chan struct{}) map[reflect.Type]bool {
	return f.WaitForCacheSyncWithContext(wait.ContextForChannel(stopCh)).Synced
}

// WaitForCacheSyncWithContext waits until every informer that was started before the
// call is in sync, or the context ends. The result says of each whether it is; its
// error is the cause of the context when one is not.
func (f *factory) WaitForCacheSyncWithContext(ctx context.Context) cache.SyncResult {
	started := f.started()
	checks := make([]cache.DoneChecker, 0, len(started))
	for _, informer := range started {
		checks = append(checks, informer.HasSyncedChecker())
	}
	// Whether all are done is asked of each below. No name: nothing is logged.
	cache.WaitFor(ctx, "", checks...)
	result := cache.SyncResult{Synced: make(map[reflect.Type]bool, len(started))}
	for goType, informer := range started {
		synced := informer.HasSynced()
		result.Synced[goType] = synced
		if !synced {
			result.Err = context.Cause(ctx)
		}
	}
	return result
}

// started returns the informers that were started, by type.
func (f *factory) started() map[reflect.Type]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	started := make(map[reflect.Type]cache.SharedIndexInformer, len(f.informers))
	for goType, m := range f.informers {
		if m.started {
			started[goType] = m.informer
		}
	}
	return started
}
