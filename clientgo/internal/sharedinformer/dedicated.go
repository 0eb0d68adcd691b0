package sharedinformer

import (
	"time"

	"k8s.io/client-go/tools/cache"
)

// Dedicated is an informer with one handler. It is synced when the handler is.
type Dedicated struct {
	*Informer
	registration *registration
}

// NewDedicated returns an informer with one handler. The handler receives every resync, and an
// update for every object that a list finds unchanged. Unlike those of shared informers, its
// resync period may be shorter than a second. The handler may be nil.
func NewDedicated(o Options, handler cache.ResourceEventHandler,
	transform cache.TransformFunc) Dedicated {
	i := New(o)
	i.transform = transform
	if handler == nil {
		handler = cache.ResourceEventHandlerFuncs{}
	}
	r := i.newRegistration(handler, o.Logger)
	r.requested, r.period = o.ResyncPeriod, o.ResyncPeriod
	r.nextResync = time.Now().Add(r.period)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.subscribeLocked(r); err != nil {
		panic("cache: a new informer refused its handler: " + err.Error()) // it has not stopped
	}
	return Dedicated{i, r}
}

// HasSynced reports whether the handler has returned from every add of the first list.
func (d Dedicated) HasSynced() bool { return d.registration.HasSynced() }

// HasSyncedChecker returns a checker that is done when HasSynced is true.
func (d Dedicated) HasSyncedChecker() cache.DoneChecker { return d.registration.HasSyncedChecker() }
