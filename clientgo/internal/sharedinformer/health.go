package sharedinformer

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/api/meta"

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

// Await waits until done returns true, or an error, and calls it after each change of the cache or
// of the version that it reflects. It fails when the informer stops.
func (x *indexer) Await(ctx context.Context, done func() (bool, error)) error {
	return x.informer.collection.Await(ctx, done)
}

// HasStarted reports whether the informer runs or has run.
func (x *indexer) HasStarted() bool { return x.informer.HasStarted() }

// Over returns why the informer follows the server no more; nil if it does or will.
func (x *indexer) Over() error { return x.informer.collection.Over() }

// Reached returns the version up to which the cache reflects the objects of a namespace, "" before
// the first list.
func (x *indexer) Reached(namespace string) (version string, ok bool) {
	return x.informer.collection.Reached(namespace)
}

// Cached returns the version and UID of a cached object, "" for one without metadata.
func (x *indexer) Cached(key string) (version, uid string, ok bool) {
	obj, ok := x.store.Get(key)
	if m, err := meta.Accessor(obj); ok && err == nil {
		version, uid = m.GetResourceVersion(), string(m.GetUID())
	}
	return version, uid, ok
}

// Keys yields the keys of the cached objects.
func (x *indexer) Keys() iter.Seq[string] { return x.informer.collection.Keys() }

// SuspectWatch is that of engine.Collection.
func (x *indexer) SuspectWatch(key, version string) {
	x.informer.collection.SuspectWatch(key, version)
}
