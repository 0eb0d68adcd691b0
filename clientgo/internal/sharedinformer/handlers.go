package sharedinformer

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/change"
	"github.com/tidings-go/tidings/internal/fanout"
)

// pauseAfterCrash is how long client-go leaves a handler alone after a panic that
// utilruntime was told to survive.
const pauseAfterCrash = time.Second

// registration is a handler's place in an informer. Registrations may be compared.
type registration struct {
	informer     *Informer
	handler      cache.ResourceEventHandler
	logger       klog.Logger
	subscription *fanout.Subscription[any]
	crashed      bool // the last call panicked; of the handler's goroutine

	// syncing says that updates which bring nothing new are for this handler: it was
	// due at the last look of the resync clock, or the clock has not looked yet.
	syncing atomic.Bool

	// Guarded by Informer.mu.
	requested  time.Duration // what the handler asked for, within the informer's bounds
	period     time.Duration // what it gets; 0 is never
	nextResync time.Time
}

// AddEventHandler adds a handler with the informer's resync period.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler. Added while the informer runs, it is first
// told of every cached object.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, fmt.Errorf("add a handler to the informer of %s: it is nil: pass a cache.ResourceEventHandlerFuncs or a handler of your own", i.name)
	}
	r := &registration{informer: i, handler: handler, logger: klog.Background()}
	if o.Logger != nil {
		r.logger = *o.Logger
	}
	var warnings []warning
	defer func() {
		for _, w := range warnings {
			r.logger.Info(w.text, w.pairs...)
		}
	}()
	i.mu.Lock()
	defer i.mu.Unlock()
	name := handlerName(handler)
	if i.IsStopped() {
		return nil, fmt.Errorf("add handler %s to the informer of %s: %w", name, i.name, ErrStopped)
	}
	r.syncing.Store(true)
	asked := i.o.ResyncPeriod
	if o.ResyncPeriod != nil {
		asked = *o.ResyncPeriod
	}
	warnings = i.scheduleLocked(r, asked)
	if err := i.subscribeLocked(r, name); err != nil {
		return nil, fmt.Errorf("add handler %s to the informer of %s: %w", name, i.name, err)
	}
	i.handlers = append(i.handlers, r)
	return r, nil
}

// subscribeLocked gives a handler its place in the log. Its initial set is the cache,
// but for an informer that does not run yet, which will tell everything.
func (i *Informer) subscribeLocked(r *registration, name string) (err error) {
	r.subscription, err = i.collection.Subscribe(r.deliver, !i.started, fanout.SubscriptionOptions{Name: name})
	return err
}

// RemoveEventHandler ends the calls of a handler. It does not wait for the one that is
// running; cache.ShutDownEventHandler does. A handler that is not of this informer, or
// was removed before, is none of its business.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("remove a handler from the informer of %s: a registration of type %T did not come from AddEventHandler of such an informer", i.name, handle)
	}
	if r.informer != i {
		return nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = slices.DeleteFunc(i.handlers, func(other *registration) bool { return other == r })
	r.subscription.Remove()
	return nil
}

// HasSynced reports whether the informer has synced and the handler has returned from
// every add of its initial set.
func (r *registration) HasSynced() bool { return r.subscription.HasSynced() }

// HasSyncedChecker is done when HasSynced is true.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	return doneChecker{r.informer.HasSyncedChecker().Name() + " + event handler " + r.subscription.Name(), r.subscription.Synced()}
}

// ShutdownChan is closed when the handler was removed, or the informer has stopped, and
// its last call has returned. cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} { return r.subscription.Done() }

// deliver calls the handler. A panic is utilruntime's to handle: by default the
// process crashes.
func (r *registration) deliver(n change.Change[any]) {
	if r.crashed {
		time.Sleep(pauseAfterCrash)
	}
	r.crashed = true // unless the call returns
	defer utilruntime.HandleCrashWithLogger(r.logger)
	switch n.Type {
	case change.Added:
		r.handler.OnAdd(n.New, n.Initial)
	case change.Updated:
		if n.Resync || r.syncing.Load() || !r.informer.isUnchanged(n.Old, n.New) {
			r.handler.OnUpdate(n.Old, n.New)
		}
	case change.Deleted:
		if n.Tombstone {
			r.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: n.Key, Obj: n.Old})
		} else {
			r.handler.OnDelete(n.New)
		}
	}
	r.crashed = false
}
