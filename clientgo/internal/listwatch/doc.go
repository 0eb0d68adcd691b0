// Package listwatch makes a source.Source of what client-go programs list and watch
// with: a cache.ListerWatcher of any kind, or a source of typed objects of our own.
//
//	cache.ListerWatcher ── Source ──┐
//	                                ├── source.Source[any] ── reflector
//	source.Source[T]    ── Untyped ─┘
//
// # Versions
//
// Resource versions order states only where a server made them. The fakes that
// programs test with leave them empty, count in their own way, or use one for all,
// and nothing tells such a fake from a server. So [Versions] watches for what no
// server does. A page of a list shows a fake when the version of an object is missing, 0,
// above that of the list, or that of another object. The events of a watch rise above
// the version that it began at, and above each other. One that does not shows a fake, but for
// two things that servers do:
//
//   - Deletes of several objects may have one version: etcd takes away all that hangs on a
//     lease in one step (kubernetes/kubernetes#110210). Each is of an object that was not
//     told of at that version.
//   - A server that lags, or a proxy, may repeat what it said: the same version of an
//     object with the same UID, among the last 512 states or more that the source has told, or
//     in the cache. The last state of an object is repeated with equal content in another
//     pointer. The queue drops what is repeated.
//
// A repetition of what was told longer ago is taken for a fake, and so is one of the last
// state of an object whose content is not known any more, as behind a transform.
// From the first sight of a fake on, versions are compared no more, and what arrives is applied.
// The sight comes before the object is handed on: nothing that a fake says is lost, but
// an update that changes nothing.
//
// Bookmarks show nothing: one whose version is older or no number is passed by.
//
// # Concurrency properties
//
// A source is used by one reflector, one call at a time, as source.Source says.
// Versions may be asked from any goroutine.
//
// A lister that takes no context cannot be interrupted. When the context ends, List
// returns and leaves the call behind, as client-go does.
//
// # Memory
//
// [Versions] keeps the key, UID and version of up to 1,024 states, and the objects of the last
// 16 events.
package listwatch
