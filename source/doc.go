// Package source reads collections of Kubernetes objects: a [Source] lists and
// watches one of them, a [Stream] is a running watch, and [REST] is the Source
// that speaks the protocol itself, through a [Client].
//
//	API server ──HTTP──▶ Client ──bytes──▶ frames ──one frame──▶ decoder ──▶ []Event[T]
//	                        │                                        ▲
//	                        └────── list body ──▶ items ─────────────┘
//
// # What a REST source does
//
//  1. It asks for protobuf where the Go type can read it and for JSON otherwise,
//     and decodes what the server chose, by the Content-Type of the answer.
//  2. A list is read one page at a time. The list itself is taken apart on the
//     wire, and every item is decoded into an object of its own, so that one
//     cached object never keeps a whole page alive.
//  3. A watch is read in batches: Next waits for one frame and then decodes
//     every further frame that has arrived completely.
//  4. An object of another kind becomes an event whose Err is set: the watch
//     goes on, and the reader counts what it drops. Everything else that
//     cannot be understood (a frame over the limit, a cut frame, garbage, an
//     ERROR event, an unknown event type) ends the watch with an [*Error] that
//     says what was received. Events that came before it are delivered first.
//     The items of a list and the objects of a watch that come in JSON are cut out by
//     their brackets, and parsed once, when they are decoded.
//  5. What typed objects that come in protobuf have in common, and what unstructured
//     objects have, those of one list or of all the client's sources, is in memory
//     once: see package
//     [github.com/tidings-go/tidings/source/dedup]. RESTOptions.Sharing limits that,
//     and DecodingStats says how many objects it was possible for.
//
// Three constructors make one: [NewTyped] for types of a scheme, [NewDynamic] for
// unstructured objects and [NewMetadata] for metadata alone.
//
// # Concurrency properties
//
// A Client may be used by any number of sources at once. A Source may have one
// List and one Watch running at a time. A Stream belongs to the goroutine that
// calls Next; Close may be called from any goroutine and makes a waiting Next
// return.
//
// # Memory
//
// A stream keeps one buffer, at most as large as the largest frame it has seen;
// it goes back to 64 KiB after a frame over 1 MiB. A list holds the body of one
// page while it decodes it. Decoded objects keep no reference to either. What is known
// of the parts that objects share takes a sixteenth of the live heap at most.
//
// # Limits
//
// A frame may have 32 MiB and a page 2 GiB unless [RESTOptions] says otherwise.
package source
