package tidings

import (
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/internal/engine"
	"github.com/tidings-go/tidings/source"
	"github.com/tidings-go/tidings/store"
)

// Lister reads the cache of an informer. Every call is answered from one state of
// it, never waits, and yields shared, read-only objects. Iterations are ordered by
// key; each holds on to the state in which it began. A Lister holds the cache in memory, also
// after the release of the informer that it came from.
type Lister[T Object] struct {
	store    *store.Store[T]
	frozen   *store.Snapshot[T] // nil if every call reads the present state
	resource schema.GroupResource
}

// Frozen returns a lister whose calls are all answered from the present state, which stays as
// it is however long the lister is held. That of a Frozen lister is the same.
func (l Lister[T]) Frozen() Lister[T] {
	if l.frozen == nil {
		snapshot := l.store.Snapshot()
		l.frozen = &snapshot
	}
	return l
}

// get is the same as Snapshot().Get(key), and faster for a lister that is not frozen.
func (l Lister[T]) get(key string) (T, bool) {
	if l.frozen != nil {
		return l.frozen.Get(key)
	}
	return l.store.Get(key)
}

// Get returns the object of a key: namespace/name, or the name of an object
// without namespace. If there is none, apierrors.IsNotFound is true of the error.
func (l Lister[T]) Get(key string) (T, error) {
	obj, ok := l.get(key)
	if !ok {
		return obj, apierrors.NewNotFound(l.resource, key)
	}
	return obj, nil
}

// Len returns the number of cached objects.
func (l Lister[T]) Len() int { return l.Snapshot().Len() }

// All yields every object with its key.
func (l Lister[T]) All() iter.Seq2[string, T] { return l.Snapshot().All() }

// Select yields every object whose labels match. See [Informer.IndexLabels] for how to
// visit no others.
func (l Lister[T]) Select(selector labels.Selector) iter.Seq2[string, T] {
	return l.selected("", selector)
}

// Owned yields every object that names an owner of that UID. See [Informer.IndexOwners]
// for how to visit no others.
func (l Lister[T]) Owned(uid types.UID) iter.Seq2[string, T] { return l.owned("", uid, false) }

// Controlled yields every object whose controller has that UID, as Owned does.
func (l Lister[T]) Controlled(uid types.UID) iter.Seq2[string, T] { return l.owned("", uid, true) }

// ByIndex yields the objects that an index has under a value. Add the index with
// [Informer.AddIndex]: otherwise the result is the same, and every object is visited.
func (l Lister[T]) ByIndex(index *Index[T], value string) iter.Seq2[string, T] {
	return l.indexed("", index, value)
}

// Snapshot returns the state that the lister reads, which stays as it is however long it is
// held.
func (l Lister[T]) Snapshot() store.Snapshot[T] {
	if l.frozen != nil {
		return *l.frozen
	}
	return l.store.Snapshot()
}

// Namespace returns a lister of one namespace.
func (l Lister[T]) Namespace(namespace string) NamespaceLister[T] {
	return NamespaceLister[T]{l, namespace}
}

// NamespaceLister reads the objects of one namespace from the cache of an
// informer, as [Lister] does.
type NamespaceLister[T Object] struct {
	lister    Lister[T]
	namespace string
}

// Get returns the object of a name. If there is none, apierrors.IsNotFound is
// true of the error.
func (l NamespaceLister[T]) Get(name string) (T, error) {
	obj, ok := l.lister.get(source.Key(l.namespace, name))
	if !ok {
		return obj, apierrors.NewNotFound(l.lister.resource, name)
	}
	return obj, nil
}

// All yields the objects of the namespace with their keys.
func (l NamespaceLister[T]) All() iter.Seq2[string, T] {
	return l.lister.Snapshot().Prefix(engine.Prefix(l.namespace))
}

// ByIndex yields the objects of the namespace that an index has under a value, as that of
// [Lister] does.
func (l NamespaceLister[T]) ByIndex(index *Index[T], value string) iter.Seq2[string, T] {
	return l.lister.indexed(engine.Prefix(l.namespace), index, value)
}

// Select yields the objects of the namespace whose labels match.
func (l NamespaceLister[T]) Select(selector labels.Selector) iter.Seq2[string, T] {
	return l.lister.selected(engine.Prefix(l.namespace), selector)
}

// Owned yields the objects of the namespace that name an owner of that UID.
func (l NamespaceLister[T]) Owned(uid types.UID) iter.Seq2[string, T] {
	return l.lister.owned(engine.Prefix(l.namespace), uid, false)
}

// Controlled yields the objects of the namespace whose controller has that UID.
func (l NamespaceLister[T]) Controlled(uid types.UID) iter.Seq2[string, T] {
	return l.lister.owned(engine.Prefix(l.namespace), uid, true)
}
