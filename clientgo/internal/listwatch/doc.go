// Package listwatch converts the inputs of client-go's informers to a source.Source: a
// cache.ListerWatcher of any kind, or a source of typed objects of our own.
//
//	Client, FromClient ──▶ cache.ListerWatcher ── Source ──┐
//	                                                       ├── source.Source[any] ── reflector
//	source.Source[T] ─────────────────────────── Untyped ──┘
//
// # Versions
//
// Resource versions order states only if a server made them. The fakes that programs test
// with leave them empty, count in their own way, or use one for all objects, and they do not
// declare it. So [Versions] looks for contents that no server sends. A page of a list shows a
// fake when the version of an object is missing, 0, above that of the list, or that of another
// object. The events of a watch rise above the version at which it began, and above each
// other. An event that does not rise shows a fake, with two exceptions:
//
//   - Deletes of several objects may have one version: etcd deletes all keys of a lease in one
//     step (kubernetes/kubernetes#110210). None of these objects had that version before.
//   - A server that lags, or a proxy, may repeat a state: the same version of an object with
//     the same UID, among the last 512 states or more that the source has delivered, or in the
//     cache. The last state of an object is repeated with equal content in another pointer. The
//     queue drops repeated states.
//
// An older repetition counts as the sign of a fake. So does a repetition of the last state of an
// object whose content is no longer known, as behind a transform. After the first sign of a fake,
// versions are no longer compared, and every state is applied. The sign is noticed before
// the object is handed on, so that only updates without a change are lost.
//
// Numbers out of order may also come from a server whose backup was restored. A source that
// declares itself a fake, or whose versions are no numbers, is one for certain: handlers then
// receive the deletes of objects that it has never added, too.
//
// Bookmarks are no sign: a bookmark whose version is older, or not a number, is skipped.
//
// # Concurrency properties
//
// A source is used by one reflector, one call at a time, as source.Source requires. Versions
// may be compared from any goroutine.
//
// A lister that takes no context cannot be interrupted. When the context ends, List returns
// and leaves the call behind, as client-go does.
//
// # Memory
//
// [Versions] keeps the key, UID and version of up to 1,024 states, and the objects of the last
// 16 events.
package listwatch
