// Package apisim is a Kubernetes API server in memory, for tests and demonstrations:
// a [Server] speaks the protocol over real HTTP, on a port or through memory, keeps
// what it is given, and can be made to fail.
//
//	client ──HTTP──▶ Middleware ─▶ routes ─┬▶ write ─▶ resource ─┬ objects (copy-on-write tree)
//	  ▲                                    ├▶ list ◀─────────────┤
//	  │                                    └▶ watch ◀────────────┴ history (bounded, with versions)
//	  └──────── frames, encoded once for all watches of a form ◀──┘
//
//	tests ──▶ Create, Update, Delete, Get, List          past HTTP, for seeds
//	      ──▶ CutConnections, Restart, Compact, …        faults
//	      ──▶ Requests                                   what was asked
//
// # Algorithms
//
//  1. A write takes the next resource version of the one sequence that all
//     resources share, replaces the object in its tree, and appends an event with
//     the states before and after to the history of its resource.
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
//     times out. It carries the newest version of the whole server.
//
// # What is simulated
//
// All built-in resources that Kubernetes 1.37 serves, and those given to
// [Server.Register]: create (also with generateName), get, list, watch, update, the
// status subresource, delete with preconditions; resource versions, UIDs,
// generations, creation timestamps, optimistic concurrency; namespaces, which must
// exist and take their objects with them; label selectors, and the field selectors
// metadata.name and metadata.namespace; limit and continue, resourceVersion and
// resourceVersionMatch, bookmarks, sendInitialEvents, timeoutSeconds; JSON,
// protobuf, and metadata alone in both; discovery, errors as Status.
//
// Writes over HTTP leave the status of a resource that has one to its subresource;
// Create and Update of [Server] write the object as it is given.
//
// # What is not
//
// Admission, defaulting, schema validation, server-side apply, garbage collection,
// authentication; patch, deletecollection, finalizers, tables, and resources defined
// by CustomResourceDefinition objects.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. One lock orders all writes; it is
// never held while something is encoded or sent. Every goroutine is one of
// net/http's, and Close waits for all of them. Within a testing/synctest bubble,
// make the server, use Config, and Close it before the bubble ends.
//
// # Memory
//
// Stored objects are immutable and shared by the tree, the history and lists. The
// history of a resource keeps up to [Options.HistoryLimit] events with two states
// each, and their frames once per form in which they were watched.
package apisim
