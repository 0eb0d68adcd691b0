package sharedinformer

import (
	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
)

// Health describes the informer and its handlers, but for those that were removed. Programs
// reach it through the interface that has this one method.
func (i *Informer) Health() health.Informer {
	h := i.collection.Health()
	i.mu.Lock()
	defer i.mu.Unlock()
	h.Handlers = make([]health.Handler, len(i.handlers))
	for n, r := range i.handlers {
		h.Handlers[n] = engine.HandlerHealth(r.subscription)
	}
	return h
}
