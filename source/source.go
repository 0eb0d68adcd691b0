package source

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidings-go/tidings/internal/engine/tape"
)

// Object is the type of the objects of a source: a pointer to an API type, an
// *unstructured.Unstructured or a *metav1.PartialObjectMetadata.
type Object interface {
	GetNamespace() string
	GetName() string
	GetUID() types.UID
	GetResourceVersion() string
	GetGeneration() int64
	GetDeletionTimestamp() *metav1.Time
	GetLabels() map[string]string
	GetOwnerReferences() []metav1.OwnerReference
	GetFinalizers() []string
}

// Source lists and watches one collection of objects: one resource, in one
// namespace or in all, after one selection.
type Source[T any] interface {
	// List reads one page of the collection.
	List(ctx context.Context, o ListOptions) (Page[T], error)

	// Watch opens a stream of changes. The stream ends when ctx ends.
	// A source that cannot stream the initial state answers
	// WatchOptions.SendInitialEvents with [ErrStreamedListRefused].
	Watch(ctx context.Context, o WatchOptions) (Stream[T], error)
}

// Stream is a running watch.
type Stream[T any] interface {
	// Next waits for events and returns at least one, or an error. After an
	// error the stream is over; io.EOF means that the server ended it in good
	// order. The slice is valid until the next call.
	Next() ([]Event[T], error)

	// Close ends the stream and makes a waiting Next return.
	Close() error
}

// ListOptions selects the page and the state to list. Its zero value asks for
// the newest state, consistently, in one page.
type ListOptions struct {
	// Version is the resource version to list at: "" is the newest state, consistently; "0" is
	// any state that the server has at hand; anything else is a state not older than it.
	Version string
	// Limit is the largest number of items wanted in the page; 0 is no limit.
	Limit int64
	// Continue is the token of the page before, "" for the first page.
	Continue string
	// Key narrows the list to the object of that key; "" is no narrowing. A source that cannot
	// narrow lists as without it.
	Key string
	// Selects reports which objects are wanted; nil means all.
	Selects Selects
	// ShardSelector narrows the list to the objects that a shard selector of Kubernetes selects;
	// "" is no narrowing. A server or a source that cannot narrow lists as without it.
	ShardSelector string
	// IsCached reports which objects the caller has already; nil means none.
	IsCached IsCached
	// OnActivity is called when a request is sent, when a part of the answer has come, and during
	// waits for memory or for the client's rate limit, by the goroutine that called List, unless it
	// is nil. Sources that cannot observe reads never call it. The time between two calls was spent
	// waiting for the server, or decoding.
	OnActivity func()
}

// WatchOptions sets the start and the longest time of a watch.
type WatchOptions struct {
	// Version is the resource version to start after. With SendInitialEvents,
	// "" asks for the newest state and anything else for one not older.
	Version string
	// Timeout is the time after which the server is asked to end the watch, in whole seconds and at
	// least one; 0 leaves it to the server.
	Timeout time.Duration
	// SendInitialEvents asks for the whole collection first, as Added events
	// that end with an InitialEventsEnd event: a streamed list.
	SendInitialEvents bool
	// Selects reports the objects of which events are wanted; nil means all. Of others the stream
	// yields events that are Unselected.
	Selects Selects
	// ShardSelector narrows the stream to the objects that a shard selector of Kubernetes selects;
	// "" is no narrowing. Whether it was narrowed cannot be told: the server of a list before it
	// may be another one.
	ShardSelector string
	// IsCached reports which objects of a streamed list the caller has already; nil means
	// none. It is called for Added events, until the first event of another type.
	IsCached IsCached
	// OnActivity is called as described at [ListOptions], by the goroutine that called Watch
	// or Next.
	OnActivity func()
}

// Selects reports, before an object is decoded, whether the caller wants objects with a UID and a
// namespace. The strings are valid during the call only. List calls it on the goroutine that called
// List; a stream may call it from several goroutines. A source need not call it, and yields objects
// whose UID and namespace cannot be read before they are decoded.
type Selects func(uid, namespace string) bool

// IsCached reports, before an object is decoded, whether the caller has that state of it.
// Then the object is neither decoded nor yielded, and the caller has noted that it is in the
// list. The strings are valid during the call only.
//
// It is called on the goroutine that called List or Next, once for each object, in the order
// in which the server sent them. If the list fails, its answers for that list are void. A
// source need not call it: an object whose namespace, name, UID or version cannot be read
// with certainty before it is decoded is yielded.
type IsCached func(key, version, uid string) bool

// Item is one object as the server described it.
type Item[T any] struct {
	// Key is namespace/name, or the name alone for objects without a namespace.
	Key string
	// Version is the resource version; some fakes have none.
	Version string
	// UID tells two objects of the same key apart.
	UID string
	// Object is the decoded object; the zero value where Err is set.
	Object T
	// Err is the reason for which this item is no object of the collection, for example
	// [*WrongObjectError]. It is to be dropped and counted.
	Err error
}

// Page is one page of a list.
type Page[T any] struct {
	Items []Item[T]
	// Version is the resource version of the whole list.
	Version string
	// Continue is the token of the next page, "" when this is the last.
	Continue string
	// Remaining is the number of items that follow this page, 0 where the server does not report
	// it.
	Remaining int64
	// Sharded reports whether the server has narrowed the list as ListOptions.ShardSelector says.
	Sharded bool
}

// EventType is the type of an event of a watch.
type EventType uint8

const (
	// Added is an object that is new to the collection, or part of its initial state.
	Added EventType = iota + 1
	// Modified is a new state of an object.
	Modified
	// Deleted is the last state of an object, with the version of the deletion.
	Deleted
	// Bookmark carries a version and no object: everything up to it was sent.
	Bookmark
	// InitialEventsEnd is the bookmark that ends a streamed list.
	InitialEventsEnd
)

// String returns the name that the event type has on the wire; the last bookmark of a streamed list
// has one of its own.
func (t EventType) String() string {
	if t == 0 || int(t) >= len(tape.EventTypes) {
		return "unknown"
	}
	return tape.EventTypes[t]
}

// eventTypeOf returns the type with a name on the wire, 0 if there is none.
func eventTypeOf(name []byte) EventType {
	for t := Added; t <= Bookmark; t++ {
		if string(name) == t.String() {
			return t
		}
	}
	return 0
}

// Event is one event of a watch. A Bookmark and an InitialEventsEnd have a Version only.
type Event[T any] struct {
	Type EventType
	// Unselected reports whether WatchOptions.Selects does not want the object: of the Item, only
	// the Version is set.
	Unselected bool
	Item[T]
}

// Key returns the key under which an object is cached: namespace/name, or the
// name alone where namespace is empty.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// splitKey returns the namespace and the name of which Key makes a key.
func splitKey(key string) (namespace, name string) {
	if namespace, name, namespaced := strings.Cut(key, "/"); namespaced {
		return namespace, name
	}
	return "", key
}

// ItemOf describes an object.
func ItemOf[T Object](obj T) Item[T] {
	return Item[T]{
		Key:     Key(obj.GetNamespace(), obj.GetName()),
		Version: obj.GetResourceVersion(),
		UID:     string(obj.GetUID()),
		Object:  obj,
	}
}
