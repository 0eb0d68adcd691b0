// Package guard watches over the writes of Kubernetes clients: a [Guard] is an HTTP transport
// that records the [Write] values of each [Call], sends nothing when a [Term] is closed, counts
// writes ([Stats]), and asks the server about writes whose outcome is unknown.
//
// # Usage
//
//	g, err := guard.New(config, guard.Options{})
//	client, err := kubernetes.NewForConfig(g.Config())
//	ctx, call := g.Begin(ctx, term)
//	_, err = client.CoreV1().Pods("shop").Update(ctx, pod, metav1.UpdateOptions{})
//	writes := call.End() // with the versions that the server has given them
//
// # Parts
//
//	reconciler ── ctx of Begin ──▶ any client made from Config
//	                                   │
//	         ended call, closed term,  ▼
//	  Error ◀── no precondition, ── transport ──▶ server
//	               shadow mode         ▲  │ timeout=…          ▲
//	                                   │  ▼                    │ get, list
//	  Call.End ◀── Write ◀── scanner ◀─┴─ answer, streamed     │
//	                 │                                         │
//	                 └── Unknown ──▶ Resolve ── Direct ────────┘
//
// # Which requests are writes
//
// POST, PUT, PATCH and DELETE of a resource, by the path of the API, except those that store
// nothing: dry runs, reviews (authentication.k8s.io and authorization.k8s.io), tokens of
// service accounts, and connections (exec, attach, portforward, proxy). All other requests pass
// untouched. A write of a subresource counts for its parent; a binding counts for pods.
//
// # Sending
//
//  1. A write with the context of a call belongs to the call. It is refused with [ErrLate] once
//     the call has ended.
//  2. A write without such a context is sent and counted, but not recorded. Its term is the one of
//     its context, from InTerm, or else of SetDefaultTerm. Events without a call have no term and
//     are counted apart, because recorders write them at any time.
//  3. The term is checked at each attempt. A closed one refuses the write with [ErrFenced].
//  4. Each attempt with a call or a term has a timeout parameter, so that the server ends it: the
//     least of [Options].Timeout, the caller's timeout and deadline, and the time until the term
//     closes if it is not renewed. The client waits a second longer, but not beyond the fence.
//  5. When the term closes, its attempts under way end with ErrFenced. All connections of the
//     guard's clients are closed then, and bytes that the system has not sent yet are dropped.
//     Other requests on these connections fail too.
//
// # Recording
//
// client-go sends a request again by itself after some errors. Each attempt is one Write:
//
//	2xx with an object           Version; Gone if the object was deleted, and has neither
//	                             finalizers nor a grace period left
//	2xx with a Status            Gone, if it is that of a delete and has a UID; else Unknown
//	2xx of a delete-collection,  Unknown
//	of a namespace in deletion,
//	or without readable metadata
//	409                          Conflict; no entry for an apply without a version, or for a
//	                             generated name that is taken
//	other 3xx and 4xx            no entry: nothing was applied
//	4xx without a Status         Unknown: a proxy has answered
//	5xx, no answer               Unknown
//	no connection                no entry: nothing was sent
//
// An answer is read as it passes. In JSON and protobuf the beginning of the body is kept until
// the metadata is whole. The guard looks for it after 512 bytes, each time that twice as much is
// there, and at the end. In CBOR the body is kept to its end. At most 4 MiB are kept: a version
// beyond them is Unknown.
//
// An unknown write may be resolved at its NotBefore: a second after the timeout of the request,
// or a second after an error that the server itself has answered. If the write was applied, it is
// the time of the answer.
//
// net/http may send a request again below the guard: on a new connection if no byte was written
// to the old one, and over HTTP/2 if the server reports that it has not processed the request. So
// at most one of these is applied, and one entry stands for all. They share one context, and so
// the fence.
//
// # Resolving
//
// Resolve sends a live GET of the metadata. If there is no such object, or no name is known, it
// sends a list without a version and with limit=1, which a server answers from its newest state,
// and takes the version of the list. It needs the verbs get and list on the resources that are
// written. A refusal counts if it is a Status: the page of a proxy is an error. A resource that is
// not served any more has no Status either, so discovery is asked about it.
//
// # Writes that the guard does not cover
//
//   - Writes of clients that are not made from Config or Client. [Guard.Check] and
//     [Guard.CheckClient] find such clients.
//   - A write that the server applies after the fence, if it received the request before.
//     [Options].RequirePreconditions makes that harmless for updates and deletes, not for patches
//     and creates.
//   - The effects of exec, attach and proxy.
//   - Writes after the clocks stood still: this is the term's concern.
//   - Writes that the server works on for longer than the timeout of the request.
//   - Bytes on the connections of a Transport that is not net/http's: its requests are cancelled
//     at the fence, and its connections stay open.
//
// # Concurrency properties
//
// All methods may be called from any goroutine. A guard has no goroutines, except one for each
// attempt under a term without AfterFunc. This goroutine ends when the answer is read or closed,
// at the timeout, or at the fence. The mutex of a call guards its attempts. It is not held during
// I/O.
//
// # Memory
//
// A call keeps each attempt with its request until the call is dropped. The guard does not keep
// calls. An attempt costs about 4 µs and 17 allocations, and three allocations more under a term
// (BenchmarkWrite).
package guard
