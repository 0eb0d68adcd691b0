// Package apisim is a Kubernetes API server in memory, for tests and demonstrations. A [Server]
// speaks the protocol over real HTTP, on a port or through memory, and stores objects. A [Fault]
// makes the requests that a [Match] selects fail. An [Instance] is one of several API servers
// before that storage, which may lag. [Requests] is the log of requests. A [Snapshot] is a state
// that [Server.Rewind] restores.
//
// # Usage
//
//	server := apisim.Start(t)
//	made, err := server.Create(ctx, pod)
//	server.Inject(apisim.Match{Verb: "watch", Resource: "pods"}.Nth(1), apisim.Fail(0, http.StatusGone))
//	client, err := kubernetes.NewForConfig(server.Config()) // as of any API server
//	server.ExpectRequests(t, apisim.Match{Verb: "create", Resource: "configmaps"}, 1)
//
// # Parts
//
//	client ──HTTP──▶ log ─▶ faults ─▶ Middleware ─▶ users ─▶ routes
//	  ▲                       │                                │
//	  │ frames, cut, late,    │      ┌─ write ◀────────────────┤
//	  │ twice, garbled …      │      ▼                         │
//	  └───────────────────────┴── resource ─┬ objects (copy-on-write tree)
//	                                        └ history (bounded, with versions)
//
//	tests ──▶ Load, Create, Update, Delete, Get, List   past HTTP
//	      ──▶ Inject, Compact, Restart, Rewind, …       faults
//	      ──▶ Requests, Watches, ExpectRequests         the log
//
// # Algorithms
//
//  1. A write takes the next resource version of the one sequence of all resources,
//     replaces the object in its tree, and appends an event with the states before and
//     after to the history of its resource. A frame is encoded once for all watches of a
//     form.
//  2. A list copies the tree in O(1). A list at an older version, or the next page of one, undoes
//     the later events on the copy. A version before the history is 410 Gone. A request for a
//     version of the future waits up to three seconds. It is then answered with 504 and the cause
//     ResourceVersionTooLarge.
//  3. A watch is a position in the history. It sends the events after it and waits for more. When
//     the history has moved past it, it ends: with an ERROR event of code 410 after Compact, and
//     without an event when it was too slow, as its client receives the error when it resumes. So a
//     slow watch neither blocks writers nor takes memory.
//  4. An event depends on the selection of the watch: an object that begins to match is
//     ADDED, one that ceases to is DELETED with its previous state and the version of the
//     change. With Options.ShardedListAndWatch, a shard selector is a part of the selection. With
//     Options.ManagedFieldsOptOut, objects without managed fields are a form of their own.
//  5. A streamed list is the state as ADDED events, the bookmark with the annotation
//     k8s.io/initial-events-end, and the watch.
//  6. A bookmark is sent at Options.BookmarkInterval and two seconds before the timeout of a watch.
//     It has the newest version of the whole server. A watch from a version of the future receives
//     no bookmark before the server has reached that version.
//  7. A patch is applied to the newest state, server-side apply by apimachinery's field
//     manager. No other write comes between.
//  8. A delete marks an object that has finalizers, and a pod that has a grace period and a node.
//     The update or delete that ends the last of these removes it. A namespace and a definition are
//     marked, their content is deleted, and the write that removes the last of the content removes
//     them.
//  9. A definition adds its resource before the write is answered. Its versions share one tree and
//     one history.
//  10. A review of access is answered from the rights of the users, and not stored.
//  11. The faults of a request are chosen when it arrives, those of older injections first. The
//     answer passes through their stages, a frame at a time.
//  12. A request whose parameter timeout ends while it waits for a fault is answered with 504. It
//     is not carried out unless it was carried out before.
//  13. A binding and an eviction change a pod and are not stored. An eviction ignores disruption
//     budgets.
//  14. An instance has a version, which follows that of the storage when its lag has passed. Its
//     memory is the state at that version: it undoes later events, and its watches do not send
//     them. Writes, objects and lists without a version, exact lists, later pages and the initial
//     state of a watch without a version are those of the storage. A streamed list without a
//     version waits until the instance has reached the version that the storage had at the request.
//
// # Scope
//
// README.md has the table. Validation against schemas, admission, kubelets and garbage
// collection are out of scope for good: use a real API server for them. There is no defaulting, and
// there are no controllers.
//
// Server-side apply merges built-in types by client-go's schemas, and custom ones without a
// schema: maps by key, lists as a whole. The managers of fields are recorded from the first
// apply of an object on.
//
// Writes over HTTP leave the status of a resource that has one to its subresource. Create and
// Update of [Server] write the whole object, and Delete gives no grace period.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. One lock orders all writes; it is not held while
// answers are encoded and sent. The locks of the faults and of the log are never held together with
// another one. Every goroutine belongs to net/http, or to a timer of a fault or of an instance that
// lags. Close waits for those of listeners and requests, and for the writes of [ApplyLater] that
// have begun. Within a testing/synctest bubble, make the server, use Config, and Close it before
// the bubble ends, or let [Start] do so.
//
// Options.Seed determines all random values. The order of simultaneous requests may differ between
// runs; sequential requests meet the same faults again.
//
// # Memory
//
// Stored objects are immutable and shared by the tree, the history, lists over HTTP, snapshots and
// instances that lag. The methods of [Server] take and return copies. The history of a resource
// keeps up to [Options].HistoryLimit events with two states each, and one frame per form. The log
// keeps up to 10,000 of the newest requests. An instance has 32 bytes per write that it has not
// read.
package apisim
