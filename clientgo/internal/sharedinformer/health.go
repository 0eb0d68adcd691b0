package sharedinformer

import (
	"context"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
)

// Health describes the informer and its handlers, but for those that were removed. Programs
// reach it through the interface that has this one method.
func (i *Informer) Health() health.Informer {
	h := i.collection.Health()
	if id := i.o.Identifier; id.Reserved() {
		gvr := id.GroupVersionResource()
		h.Published = health.Published{
			Name: id.Name(), Group: gvr.Group, Version: gvr.Version, Resource: gvr.Resource,
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	h.Handlers = make([]health.Handler, len(i.handlers))
	for n, r := range i.handlers {
		h.Handlers[n] = engine.HandlerHealth(r.subscription)
	}
	return h
}

// WaitFor waits until the cache reflects a version, for programs that have it only. It fails when
// the informer stops.
func (x *indexer) WaitFor(ctx context.Context, version string) error {
	c := x.informer.collection
	return c.Await(ctx, func() (bool, error) { return c.Reflects(version), nil })
}
