// Package follow runs informers of every kind with a handler each: a [Follower] compares the
// cache, and the state that the handler's events add up to, with the state of the server.
//
//	tidings.For, Dynamic, Metadata, two namespaces ─┐
//	clientgo: informers, dynamic, metadata ─────────┴─▶ Follower ─▶ Check(State)
//
// # Concurrency properties
//
// The methods of a [Follower] may be called from any goroutine, but for Follow, which must not
// be called beside Check.
package follow
