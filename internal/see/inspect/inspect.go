package inspect

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tidings-go/tidings/health"
	"github.com/tidings-go/tidings/internal/engine/slot"
	"github.com/tidings-go/tidings/source"
)

// Informer is an informer of any type. Its methods may be called from any goroutine.
type Informer interface {
	View
	// Name returns its name in errors, logs and health.
	Name() string
	// IsWhole reports whether its objects have all fields but those that its selection leaves out:
	// they are neither a view nor metadata.
	IsWhole() bool
	// Server returns the address of the API server, "" without a factory.
	Server() string
	// Resolve returns the resource that it holds, and asks the server for the parts that are not
	// known.
	Resolve(ctx context.Context) (source.Resource, error)
	// Selects reports whether it has a label or field selector, so that an object may leave
	// it without being deleted.
	Selects() bool
	// Selectors returns its label and field selector, "" for none.
	Selectors() (labels, fields string)
	// Slots are those of which it has the objects, nil for all objects, and Holds reports whether
	// an object with a UID and a namespace is in one of them.
	Slots() *slot.Holding
	Holds(uid, namespace string) bool
	// Reached returns the version up to which the cache reflects the objects of a namespace,
	// "" before the first list. ok is false if it does not hold that namespace.
	Reached(namespace string) (version string, ok bool)
	// Lacks reports whether it holds a namespace whose first list is not in the cache.
	Lacks(namespace string) bool
	// WatchOf describes the list and watch that brings the objects of a namespace.
	WatchOf(namespace string) health.Watch
	// Cached returns the version and UID of a cached object.
	Cached(key string) (version, uid string, ok bool)
	// Received returns those of the present state of an object, which may be one that cannot be
	// decoded, in the place of the cached one.
	Received(key string) (version, uid string, ok bool)
	// SuspectWatch reports that a consistent read has shown another state of an object than is
	// cached: the watch is begun anew, unless it has just begun. version and uid are those of the
	// cached state if that was cached before the read and is later than the state that the read has
	// shown, and "" otherwise. A version without a UID is one that was reached before the read, and
	// is later than that of the collection.
	SuspectWatch(key, version, uid string)
	// CatchUp lists the objects of the namespace of a key, if they do not reflect a version yet. It
	// does nothing within ten seconds after the last time.
	CatchUp(key, version string)
	// Version returns the version that the whole cache reflects.
	Version() string
	// Over returns why it follows the server no more; nil if it does or will.
	Over() error
	// Outlast makes it follow the server after the end of the context that it runs with, until
	// another context has ended too. The shutdown of its factory and its release end it all the
	// same.
	Outlast(other context.Context)
	// Turns counts the batches of changes that are applied, and the calls of the transform. A
	// counter is odd during one, so that one which stays odd hangs.
	Turns() (applied, transformed uint64)
}

// Factory is a factory of informers. Its methods may be called from any goroutine.
type Factory interface {
	// Views returns the views of its informers, in the order in which they were asked for.
	Views() []View
	// Hold counts a manager that runs on it. release reports whether it was the last one: that one
	// stops the informers.
	Hold() (release func() bool)
	// Served returns nil if its server serves a resource, and otherwise why not.
	Served(ctx context.Context, gvr schema.GroupVersionResource) error
}

// Of returns the inspection of a *tidings.Informer, which must not have been released.
func Of(informer any) (Informer, error) {
	i, ok := informer.(interface{ Inspect() (Informer, error) })
	if !ok {
		return nil, fmt.Errorf("tidings: %T is no *tidings.Informer", informer)
	}
	return i.Inspect()
}
