// Package source reads collections of Kubernetes objects: a [Source] lists and watches one
// of them, a [Stream] is a running watch, and [REST] is the Source that speaks the protocol
// itself, through a [Client]. [NewTyped] makes one for types of a scheme, [NewView] for structs
// that declare the fields that are read, [NewDynamic] for unstructured objects and [NewMetadata]
// for metadata alone.
//
//	API server ──HTTP──▶ Client ──watch──▶ frames ──▶ one frame ──▶ decoder ──▶ []Event[T]
//	                        │                                         ▲
//	                        └───list──▶ protobufList, jsonList ──▶ one item
//
// # Lists and watches of a REST source
//
//  1. It asks for protobuf if the Go type can be decoded from it, and for JSON otherwise. It
//     decodes by the Content-Type of the answer. If the objects go without managed fields, it asks
//     the server to leave these out (KEP-5958). A request that is answered with 406 then is sent
//     again without that, and the Client does not ask for it again.
//
//  2. A list is read one page at a time, and every item is decoded into an object of its own,
//     so that one cached object never keeps a whole page alive. In protobuf, items are decoded
//     while the body arrives, 256 at a time.
//
//  3. A watch is read in batches: Next waits for one frame and then decodes every further
//     frame that has arrived completely.
//
//  4. 64 KiB or more that arrive at once are decoded by up to four goroutines, as many as
//     there are cores. Objects stay in order. If one cannot be decoded, those before it come
//     first.
//
//  5. Before an object is decoded, [IsCached] is called with key, version and UID, which are
//     read from the encoded metadata. A cached object is neither decoded nor yielded. Objects
//     whose encoding is unusual are always decoded.
//     So are [Selects]' with UID and namespace: an object that it does not want is not decoded, and
//     an event of one has a version alone.
//
//  6. An object of another kind or without a name becomes an event whose Err is set.
//     Everything else that cannot be understood ends the watch with an [*Error] that describes
//     it: a frame over the limit, a cut frame, garbage, an ERROR event, an unknown event type.
//     Events that came before it are yielded first.
//
//  7. Objects share in memory the parts that they have in common: see package
//     [github.com/tidings-go/tidings/internal/decode/dedup]. Transport.Sharing limits that, and
//     DecodingStats count it.
//
//  8. The name and the scope of a resource that are not given are asked for when a request needs
//     them: a mapper first, then the server. They are asked for again when the server answers
//     404, lists another kind, or has the resource in another scope than the options say.
//
// # Recordings
//
// [Record] writes the answers and events of a source to a flight recorder, and [Replay] returns a
// source that plays a recording: see package github.com/tidings-go/tidings/flight.
//
// # Concurrency properties
//
// Any number of sources may use a Client at once. A Source may have one Watch and several Lists
// running at a time. A Stream belongs to the goroutine that calls Next; any goroutine may call
// Close, which makes a waiting Next return.
//
// List and Next start goroutines for decoding, which have ended when they return. These call
// no function of the caller except the one that makes objects; List and Next themselves call
// IsCached.
//
// # Memory
//
// A stream keeps one buffer of 16 KiB. It grows to 512 KiB while reads fill it, and further
// for a larger frame. It shrinks when a streamed list is over, when eight reads in a row have
// left room, and after a frame over 1 MiB. A list in protobuf is read with the same kind of
// buffer, which the next page inherits. A page in JSON is in memory as a whole while it is
// decoded. Decoded objects keep no reference to either.
//
// # Limits
//
// A frame may have 32 MiB and a page 2 GiB unless [Transport] says otherwise, and all pages of
// a client that are read at once 4 GiB, or the size of a [Budget]. Redirects to another host
// are not followed: see [ErrRedirect].
package source
