package sharedinformer

import (
	"context"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine"
)

// Health describes the informer and its handlers, except for those that were removed. Programs
// reach it through the interface that has this one method.
func (i *Informer) Health() health.Informer {
	h := i.collection.Health()
	h.Fallback = i.o.Fallback
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

// progress has the methods with which an engine.Collection describes its cache.
type progress interface {
	Await(ctx context.Context, done func() (bool, error)) error
	Over() error
	Reached(namespace string) (version string, ok bool)
	Undecodable(key string) (version, uid string, ok bool)
	SuspectWatch(key, version, uid string)
	CatchUp(key, version string)
}

// WaitFor waits until the cache reflects a version, for programs that have only the cache. It
// returns an error when the informer stops.
func (x *indexer) WaitFor(ctx context.Context, version string) error {
	return x.Await(ctx, func() (bool, error) { return x.informer.collection.Reflects(version), nil })
}

// HasStarted reports whether the informer runs or has run.
func (x *indexer) HasStarted() bool { return x.informer.HasStarted() }

// Cached returns the version and UID of a cached object, "" for one without metadata.
func (x *indexer) Cached(key string) (version, uid string, ok bool) {
	obj, ok := x.store.Get(key)
	version, uid = versionAndUID(obj)
	return version, uid, ok
}

// Received returns the version and UID of the present state of an object, which may be one that
// cannot be decoded.
func (x *indexer) Received(key string) (version, uid string, ok bool) {
	if version, uid, ok = x.Undecodable(key); ok {
		return version, uid, true
	}
	return x.Cached(key)
}
