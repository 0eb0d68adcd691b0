// Package feed yields pods from memory to an informer of any stack: a [Feed] is a
// source.Source for Tidings' own informers, and [Feed.ListerWatcher] is the same for
// client-go's and for the drop-in.
//
//	benchmark ──Send──▶ Feed ──▶ Stream.Next, one batch a call         (Tidings)
//	                      └────▶ watch.Interface, one event at a time   (client-go, drop-in)
//
// The initial set is streamed, as a server does: events of type Added, and a bookmark.
// client-go's watch is an interface of single events, which its own decoder sends through
// a channel without a buffer. The feed does the same.
//
// # Concurrency properties
//
// [Feed.Send] may be called by one goroutine at a time, and returns when the informer has
// taken the batch. One informer reads a feed.
//
// # Memory
//
// A feed holds the pods of the initial set. Informers of all stacks hold those very
// objects, so the rest of the heap is the stack's own.
package feed
