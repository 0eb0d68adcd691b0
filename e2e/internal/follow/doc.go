// Package follow keeps, for informers of every kind, what their handlers were told beside
// what their caches hold, so that both can be compared with what is true.
//
//	tidings.For, Dynamic, Metadata, two namespaces ─┐
//	clientgo: informers, dynamic, metadata ─────────┴─▶ Follower ─▶ Handler (fold), Cache
//
// # Concurrency properties
//
// The methods of a [Follower] may be called from any goroutine; handlers call it from
// theirs.
package follow
