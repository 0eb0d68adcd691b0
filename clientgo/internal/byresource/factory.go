package byresource

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// Factory holds informers by resource. Make one with [New].
type Factory struct {
	make    func(schema.GroupVersionResource) informers.GenericInformer
	running sync.WaitGroup // a count for each informer's goroutine

	mu           sync.Mutex // guards the rest
	informers    map[schema.GroupVersionResource]informers.GenericInformer
	started      map[schema.GroupVersionResource]bool
	shuttingDown bool
}

// New returns a factory of the informers that make makes. It is called once per
// resource, with the factory locked.
func New(make func(schema.GroupVersionResource) informers.GenericInformer) *Factory {
	return &Factory{
		make:      make,
		informers: map[schema.GroupVersionResource]informers.GenericInformer{},
		started:   map[schema.GroupVersionResource]bool{},
	}
}

// ForResource returns the informer of a resource, which all who ask for it share.
func (f *Factory) ForResource(gvr schema.GroupVersionResource) informers.GenericInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	informer, ok := f.informers[gvr]
	if !ok {
		informer = f.make(gvr)
		f.informers[gvr] = informer
	}
	return informer
}

// Start is StartWithContext with a channel that ends it.
func (f *Factory) Start(stopCh <-chan struct{}) { f.StartWithContext(wait.ContextForChannel(stopCh)) }

// StartWithContext runs every informer that was asked for and is not running, until ctx
// ends. It does nothing after Shutdown.
func (f *Factory) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shuttingDown {
		return
	}
	for gvr, informer := range f.informers {
		if !f.started[gvr] {
			f.started[gvr] = true
			f.running.Go(func() { informer.Informer().RunWithContext(ctx) })
		}
	}
}

// WaitForCacheSync waits until every informer that was started has synced, or the
// channel is closed, and says of each whether it has.
func (f *Factory) WaitForCacheSync(stopCh <-chan struct{}) map[schema.GroupVersionResource]bool {
	running := f.startedInformers()
	checkers := make([]cache.DoneChecker, 0, len(running))
	for _, informer := range running {
		checkers = append(checkers, informer.HasSyncedChecker())
	}
	cache.WaitFor(wait.ContextForChannel(stopCh), "", checkers...)
	synced := make(map[schema.GroupVersionResource]bool, len(running))
	for gvr, informer := range running {
		synced[gvr] = informer.HasSynced()
	}
	return synced
}

func (f *Factory) startedInformers() map[schema.GroupVersionResource]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	running := make(map[schema.GroupVersionResource]cache.SharedIndexInformer, len(f.started))
	for gvr := range f.started {
		running[gvr] = f.informers[gvr].Informer()
	}
	return running
}

// Shutdown keeps further informers from being started and waits until all have stopped,
// for which what they were started with has to end.
func (f *Factory) Shutdown() {
	f.mu.Lock()
	f.shuttingDown = true
	f.mu.Unlock()
	f.running.Wait()
}
