package sharedinformer

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/tidings-go/tidings/internal/engine/change"
	"github.com/tidings-go/tidings/internal/engine/fanout"
)

// pauseAfterCrash is the pause of client-go after a panic that did not crash the process.
const pauseAfterCrash = time.Second

// registration is the handle of a handler. Registrations may be compared.
type registration struct {
	informer     *Informer
	handler      cache.ResourceEventHandler
	logger       klog.Logger
	subscription *fanout.Subscription[any]
	crashed      bool // the last call panicked; only the handler's goroutine uses it

	// syncing reports whether the handler receives updates of unchanged objects: it was due at
	// the last decision of the resync timer, or there was no decision yet.
	syncing atomic.Bool

	// Guarded by Informer.mu.
	requested  time.Duration // the resync period that the program requested, at least a second
	period     time.Duration // the resync period; 0 is no resyncs
	nextResync time.Time
}

// AddEventHandler adds a handler with the informer's resync period.
func (i *Informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler,
	period time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &period})
}

// newRegistration returns the registration of a handler that is not subscribed yet.
func (i *Informer) newRegistration(handler cache.ResourceEventHandler,
	logger *klog.Logger) *registration {
	r := &registration{informer: i, handler: handler, logger: klog.Background()}
	if logger != nil {
		r.logger = *logger
	}
	r.syncing.Store(true)
	return r
}

// AddEventHandlerWithOptions adds a handler. While the informer runs, a new handler first
// receives an add for every cached object.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler,
	o cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, fmt.Errorf("add a handler to the informer of %s: it is nil: "+
			"pass a cache.ResourceEventHandlerFuncs or a handler of your own", i.name)
	}
	r := i.newRegistration(handler, o.Logger)
	requested := i.o.ResyncPeriod
	if o.ResyncPeriod != nil {
		requested = *o.ResyncPeriod
	}
	warnings, err := i.addLocking(r, requested)
	if err != nil {
		return nil, fmt.Errorf("add handler %s to the informer of %s: %w",
			handlerName(handler), i.name, err)
	}
	for _, warn := range warnings { // without the lock: the logger may call the informer
		warn()
	}
	return r, nil
}

func (i *Informer) addLocking(
	r *registration, requested time.Duration) (warnings []func(), err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.IsStopped() {
		return nil, ErrStopped
	}
	warnings = i.scheduleLocked(r, requested)
	return warnings, i.subscribeLocked(r)
}

// subscribeLocked subscribes a handler to the log. Its initial set is the cache, but before
// Run there is no initial set: the handler will receive every change.
func (i *Informer) subscribeLocked(r *registration) (err error) {
	o := fanout.SubscriptionOptions{Name: handlerName(r.handler)}
	r.subscription, err = i.collection.Subscribe(r.deliver, !i.started, o)
	if err == nil {
		i.handlers = append(i.handlers, r)
	}
	return err
}

// RemoveEventHandler ends the calls of a handler. It does not wait for a call that is running;
// cache.ShutDownEventHandler does. It ignores the handlers of other informers, and those that
// were removed before.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok {
		return fmt.Errorf("remove a handler from the informer of %s: a registration of type %T "+
			"did not come from AddEventHandler of such an informer", i.name, handle)
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

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (r *registration) HasSyncedChecker() cache.DoneChecker {
	name := r.informer.HasSyncedChecker().Name() + " + event handler " + r.subscription.Name()
	return doneChecker{name, r.subscription.Synced()}
}

// ShutdownChan returns a channel that is closed when the handler was removed, or the informer
// has stopped, and its last call has returned. cache.ShutDownEventHandler waits for it.
func (r *registration) ShutdownChan() <-chan struct{} { return r.subscription.Done() }

// Moved is the argument of OnDelete for an object that exists, and whose slot has left the
// informer: another process follows it. See informers.WithSlots.
type Moved struct {
	Key string
	// Object is the last state that was cached.
	Object any
}

// reportSurvived reports a panic that was recovered here. The log reports the others.
func (r *registration) reportSurvived(context.Context, any) {
	if !utilruntime.ReallyCrash {
		r.informer.collection.ReportPanic()
	}
}

// deliver calls the handler. utilruntime handles its panics: by default the process crashes.
func (r *registration) deliver(n change.Change[any]) {
	if r.crashed {
		time.Sleep(pauseAfterCrash)
	}
	r.crashed = true // until the call has returned
	defer utilruntime.HandleCrashWithLogger(r.logger, r.reportSurvived)
	switch n.Type {
	case change.Added:
		r.handler.OnAdd(n.New, n.Initial)
	case change.Updated:
		if n.Resync || r.syncing.Load() || !r.informer.isUnchanged(n.Old, n.New) {
			r.handler.OnUpdate(n.Old, n.New)
		}
	case change.Deleted:
		if n.Moved {
			r.handler.OnDelete(Moved{Key: n.Key, Object: n.Old})
		} else if n.Tombstone {
			r.handler.OnDelete(cache.DeletedFinalStateUnknown{Key: n.Key, Obj: n.Old})
		} else {
			r.handler.OnDelete(n.New)
		}
	}
	r.crashed = false
}
