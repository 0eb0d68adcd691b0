// Package apisim is a Kubernetes API server in memory, for tests and demonstrations:
// a [Server] speaks the protocol over real HTTP, on a port or through memory, keeps
// what it is given, and can be made to fail: a [Fault] meets the requests that a
// [Match] selects, [Requests] say what was asked, and a [Snapshot] is a state to go
// back to.
//
//	client ──HTTP──▶ log ─▶ faults ─▶ Middleware ─▶ users ─▶ routes
//	  ▲                       │                                │
//	  │ frames, cut, late,    │      ┌─ write ◀────────────────┤
//	  │ twice, garbled …      │      ▼                         │
//	  └───────────────────────┴── resource ─┬ objects (copy-on-write tree)
//	                                        └ history (bounded, with versions)
//
//	tests ──▶ Load, Create, Update, Delete, Get, List   past HTTP, for seeds
//	      ──▶ Inject, Compact, Restart, Rewind, …       faults
//	      ──▶ Requests, Watches, ExpectRequests         what was asked
//
// # Algorithms
//
//  1. A write takes the next resource version of the one sequence that all
//     resources share, replaces the object in its tree, and appends an event with
//     the states before and after to the history of its resource. Frames are encoded
//     once for all watches of a form.
//  2. A list copies the tree in O(1). A list at an older version, or the next page
//     of one, undoes the events since then on the copy. A version that the history
//     does not reach is 410 Gone; one that was not reached yet is waited for three
//     seconds and is then 504 with the cause ResourceVersionTooLarge.
//  3. A watch is a position in the history. It sends what follows it and waits for
//     more. When the history has moved past it, it ends: with an ERROR event of code
//     410 after Compact, and without a word when it was too slow, as its client will
//     resume and be told then. So a slow watch neither blocks writers nor takes
//     memory. A watch that begins before the history gets the ERROR event at once,
//     and one from a version in the future begins when that is reached.
//  4. What a watch with a selection sees of an event depends on both states: an
//     object that begins to match is ADDED, one that ceases to is DELETED with its
//     previous state and the version of the change.
//  5. A streamed list is the state as ADDED events, the bookmark with the annotation
//     k8s.io/initial-events-end, and the watch.
//  6. A bookmark comes at Options.BookmarkInterval and two seconds before the watch
//     times out. It carries the newest version of the whole server; a watch
//     from a version that was not reached yet gets none.
//  7. A patch is applied to the newest state without a lock, and again if another
//     write came between.
//  8. A delete marks an object that has finalizers, and a pod that has a grace period
//     and a node; the update or delete that ends the last of these removes it. A
//     namespace and a definition are marked, have their content deleted, and go with
//     the last of it, in the write that takes that away.
//  9. A definition makes its resource known before the write of it is answered. Its
//     versions share one tree and one history, and show the objects in theirs.
//  10. A fault is decided when a request comes: those injected earlier first. What a
//     handler writes then goes through their stages, a frame at a time.
//
// # What is simulated, and what is not
//
// docs/apisim.md has the table. Out of scope for good are validation against schemas,
// admission, server-side apply and garbage collection: a real API server is the place
// for them. Nor is there defaulting, nor controllers.
//
// Writes over HTTP leave the status of a resource that has one to its subresource;
// Create and Update of [Server] write the object as it is given, and Delete gives no
// grace period.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. One lock orders all writes; it is
// never held while something is encoded or sent. The lock of the faults and that of
// the log are held by themselves. Every goroutine is one of net/http's, and Close
// waits for all of them. Within a testing/synctest bubble, make the server, use
// Config, and Close it before the bubble ends, or let [Start] do so.
//
// All that is random comes from [Options].Seed. Requests that come at once may be
// counted in another order in another run; whatever comes one after the other meets
// the same faults again.
//
// # Memory
//
// Stored objects are immutable and shared by the tree, the history, lists, snapshots
// and lagging replicas. The history of a resource keeps up to [Options].HistoryLimit
// events with two states each, and their frames once per form in which they were
// watched. The log keeps the newest 10,000 requests.
package apisim
