package factory

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	tidingscache "github.com/tidings-go/tidings/clientgo/cache"
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/see/inspect"
)

// Factory shares informers by a key, such as their Go type. The zero value is ready.
type Factory[K comparable] struct {
	running sync.WaitGroup // the number of informers that run

	mu           sync.Mutex // guards the rest
	members      map[K]*member
	order        []*member // in the order of the first requests
	shuttingDown bool
}

type member struct {
	informer cache.SharedIndexInformer
	started  bool
}

// Informer returns the informer of a key. The first call for a key calls newInformer, with the
// factory locked.
func (f *Factory[K]) Informer(key K, newInformer func() cache.SharedIndexInformer) cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, ok := f.members[key]; ok {
		return m.informer
	}
	if f.members == nil {
		f.members = make(map[K]*member)
	}
	m := &member{informer: newInformer()}
	f.members[key] = m
	f.order = append(f.order, m)
	return m.informer
}

// Start is StartWithContext with a channel that is closed to stop the informers.
func (f *Factory[K]) Start(stopCh <-chan struct{}) {
	f.StartWithContext(wait.ContextForChannel(stopCh))
}

// StartWithContext runs the informers that are not started yet, until the context ends. It
// does not wait for them, and does nothing after Shutdown. Each informer is started once, even
// if its context has ended.
func (f *Factory[K]) StartWithContext(ctx context.Context) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.shuttingDown {
		return
	}
	for _, m := range f.members {
		if !m.started {
			m.started = true
			f.running.Go(func() { m.informer.RunWithContext(ctx) })
		}
	}
}

// WaitForCacheSync is Wait with a channel that is closed to end the wait.
func (f *Factory[K]) WaitForCacheSync(stopCh <-chan struct{}) map[K]bool {
	synced, _ := f.Wait(wait.ContextForChannel(stopCh))
	return synced
}

// Wait waits until every informer that was started before the call is in sync, or the
// context ends. The result reports for each informer whether it is in sync. If one is not, the
// error is the cause of the context.
func (f *Factory[K]) Wait(ctx context.Context) (synced map[K]bool, err error) {
	started := f.started()
	checks := make([]cache.DoneChecker, 0, len(started))
	for _, informer := range started {
		checks = append(checks, informer.HasSyncedChecker())
	}
	cache.WaitFor(ctx, "", checks...) // without a name, WaitFor logs nothing
	synced = make(map[K]bool, len(started))
	for key, informer := range started {
		if synced[key] = informer.HasSynced(); !synced[key] {
			err = context.Cause(ctx)
		}
	}
	return synced, err
}

func (f *Factory[K]) started() map[K]cache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	started := make(map[K]cache.SharedIndexInformer, len(f.members))
	for key, m := range f.members {
		if m.started {
			started[key] = m.informer
		}
	}
	return started
}

// Health describes the informers, in the order in which they were first requested, except for
// those of other modules.
func (f *Factory[K]) Health() (all []health.Informer) {
	for _, m := range f.inOrder() {
		if h, ok := tidingscache.HealthOf(m.informer); ok {
			all = append(all, h)
		}
	}
	return all
}

// Inspect returns the views of the informers, in the order of Health.
func (f *Factory[K]) Inspect() (all []inspect.View) {
	for _, m := range f.inOrder() {
		if of, ok := m.informer.GetStore().(interface{ Inspect() inspect.View }); ok {
			all = append(all, of.Inspect())
		}
	}
	return all
}

func (f *Factory[K]) inOrder() []*member {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.order)
}

// Shutdown prevents further starts and waits until all informers have stopped. The caller
// ends the contexts that they were started with, before the call or meanwhile. It may be
// called more than once, from any goroutine.
func (f *Factory[K]) Shutdown() {
	f.mu.Lock()
	f.shuttingDown = true
	f.mu.Unlock()
	f.running.Wait()
}
