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
// server does: an object in a list whose version is missing, 0, that of another object or
// above that of the list; an event of a watch whose version is not above the one before
// it. From the first such sight on, versions are compared no more, and what arrives is applied.
// The sight comes before the object is handed on: nothing that a fake says is lost.
//
// # Concurrency properties
//
// A source is used by one reflector, one call at a time, as source.Source says.
// Versions may be asked from any goroutine.
//
// A lister that takes no context cannot be interrupted. When the context ends, List
// returns and leaves the call behind, as client-go does.
package listwatch
