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
//     cached object never keeps a whole page alive. In protobuf that is done as the
//     body arrives: kind first, then items, 256 at a time. A body that begins in
//     another order than Go's encoders write is read to its end first; one that
//     has its kind or its content again after the content is malformed.
//  3. A watch is read in batches: Next waits for one frame and then decodes
//     every further frame that has arrived completely.
//  4. What is to be decoded at once and has 64 KiB or more is divided among up to four
//     goroutines, as many as there are cores, in stretches of at least 32 KiB. Objects
//     stay in order, and where one cannot be decoded, those before it come first.
//  5. Before an object is decoded, [Held] is asked, if there is one, whether
//     the caller has that state of it: key, version and UID are read from the encoded
//     metadata. Only the outermost fields and those of the metadata are looked at: in
//     protobuf in order, once each, no group, all there; in JSON by their brackets and
//     quotes, once each, without escapes. Anything else is left to the decoder. An
//     object that is held is neither decoded nor yielded; of a streamed list that holds
//     until the first event that is not Added.
//  6. An object of another kind or without a name becomes an event whose Err is set: the watch
//     goes on, and the reader counts what it drops. Everything else that
//     cannot be understood (a frame over the limit, a cut frame, garbage, an
//     ERROR event, an unknown event type) ends the watch with an [*Error] that
//     says what was received. Events that came before it are delivered first.
//     The items of a list and the objects of a watch that come in JSON are cut out by
//     their brackets, and parsed once, when they are decoded.
//  7. What typed objects that come in protobuf have in common, and what unstructured
//     objects have, those of one list or of all the client's sources, is in memory
//     once: see package
//     [github.com/tidings-go/tidings/internal/dedup]. RESTOptions.Sharing limits that,
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
// Goroutines are started by List and Next, for decoding, and have ended when these
// return. They call nothing of the caller's but the function that makes objects; Held is
// called by List and Next themselves.
//
// # Memory
//
// A stream keeps one buffer of 64 KiB. It grows to 512 KiB while reads fill it, and
// beyond that for a larger frame; it goes back when a streamed list is over, when eight
// reads in a row have left room, and after a frame over 1 MiB. A list in protobuf is read
// with the same kind of buffer, which the next page inherits; one in JSON is in memory as
// a whole, a page at a time, while it is decoded. Decoded objects keep no reference to
// either. What is held costs nothing here. What is known
// of the parts that objects share takes a sixteenth of the live heap at most.
//
// # Limits
//
// A frame may have 32 MiB and a page 2 GiB unless [RESTOptions] says otherwise, and all pages
// of a client that are being read at once 4 GiB, or what a [Budget] says. Redirects to another
// host are not followed: see [ErrRedirect].
package source
