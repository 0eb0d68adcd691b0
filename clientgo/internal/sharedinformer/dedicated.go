package sharedinformer

import (
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// NewDedicated returns an informer with one handler, which receives every resync and
// of every object that a list finds unchanged, and is as near to a shared informer as
// that. Its resync period has no least value. A nil handler leaves the cache alone.
func NewDedicated(o Options, handler cache.ResourceEventHandler, transform cache.TransformFunc) (*Informer, cache.ResourceEventHandlerRegistration) {
	i := New(o)
	i.transform = transform
	if handler == nil {
		handler = cache.ResourceEventHandlerFuncs{}
	}
	r := &registration{informer: i, handler: handler, logger: klog.Background()}
	if o.Logger != nil {
		r.logger = *o.Logger
	}
	r.syncing.Store(true)
	r.requested, r.period = o.ResyncPeriod, o.ResyncPeriod
	r.nextResync = time.Now().Add(r.period)
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.subscribeLocked(r, handlerName(handler)); err != nil {
		panic("cache: a new informer refused its handler: " + err.Error()) // cannot be: the log is open and the options are none
	}
	i.handlers = append(i.handlers, r)
	return i, r
}
