// Package dedup decodes Kubernetes API objects and keeps their common parts in memory once:
// a [Decoder] decodes the [Message] values of one Go type from protobuf, a [StructDecoder]
// decodes the values of one Go type from JSON, a [MapDecoder] decodes unstructured objects from
// JSON into maps, and a [Sharer] takes objects that are decoded already. All of them share through a [Table]. [Sharing] selects the parts that are
// shared; [DecoderStats], [SharerStats] and [TableStats] count.
//
// The pods of a workload have most of their bytes in common. The generated Unmarshal
// allocates the values of these bytes again for each pod. This package compares the bytes
// instead, and lets the second pod point to the values of the first. Objects are deeply
// equal to those of the generated code, and of the API machinery for JSON.
//
//	bytes of an object
//	  │   layout of the Go type, compiled once for protobuf and once for JSON
//	  ├── number ───────────────────────▶ set
//	  ├── string ──────▶ fieldStats ───▶ paused: ownStrings, one allocation per object
//	  │                      └─ tries ─▶ recentCache ─▶ Table.texts
//	  └── message behind a
//	      pointer, slice,
//	      map ─────────▶ fieldStats ───▶ paused: built, field by field
//	                         └─ tries ─▶ recentCache ─▶ Table.values (key: the bytes;
//	                                                    value: a weak pointer)
//
// # Algorithms
//
// Compiling a Go type (compile.go):
//
//  1. The Unmarshal method must be generated, and the type's own: only then do the struct
//     tags describe the encoding. The few handwritten ones are in handwritten.go.
//  2. Each tagged field gets its number, offset and kind. The wire type follows from the Go
//     type, because the tags are wrong in places.
//  3. Secret, and a type with a field of an unknown kind, is left to its own Unmarshal:
//     [Decoder.Shares] says why.
//  4. A field that [Decoder.Without] leaves out is skipped. Types with different fields
//     left out have different key spaces, so that they share no values.
//
// Decoding protobuf (proto.go):
//
//  1. Fields must be encoded as Go's encoders write them: in rising order, each once. For
//     any other legal form, the generated code decodes the whole object, so that result and
//     error are its own.
//  2. The bytes of a message behind a pointer, of a slice or of a map are a key. If a value
//     of the same Go type was decoded from the same bytes and is in use, it is taken.
//     Otherwise it is built. If the new value is to be shared, its strings point into a
//     copy of the key.
//  3. Slices have no spare capacity, so that appending to them copies them.
//
// Decoding JSON into Go structs (structcompile.go, structworker.go):
//
//  1. The text is cut into tokens, and its syntax is checked. Texts, depths and numbers that
//     are too large, and everything that is not JSON, are left to the API machinery.
//  2. Fields are found by their names in JSON, by the rules of encoding/json for tags and embedded
//     structs. The names must match with their case.
//  3. The bytes of the value of a pointer, a slice or a map are a key, as in protobuf. Values in
//     interfaces are decoded as maps are.
//  4. Types that read their JSON themselves are called with a copy of it (structreaders.go). The
//     common ones, such as Time and Quantity, are read here.
//  5. The API machinery decodes the whole object if a field comes twice, a value has another type
//     than its field, a type refuses its value, or the value of a field of an unusual type is
//     there: a map with numbers as keys, an array, an interface with methods, a field whose tag
//     says "string", one behind an embedded pointer. So result and error are its own.
//  6. A value that was found is expected in the next object, where the same bytes are around its
//     beginning. If it comes there, it is not cut into tokens (expected.go).
//
// Decoding JSON into maps (mapworker.go):
//
//  1. The text is cut into tokens, as for Go structs.
//  2. The bytes of an object or array are the key of its map or slice, in any field.
//  3. Without Go types, fields are learned by name and parent, in a pathTree.
//
// Sharing decoded objects (shareworker.go):
//
//  1. The values themselves are hashed and compared, so that no keys are kept. Values are
//     equal if all their bits are; strings, slices and maps by their content; nil is not
//     empty.
//  2. The given object is only read. Where parts of it are replaced, it is copied, if that
//     saves a third of the copy's size. Values in the table are deep copies.
//  3. After some objects in which little was found, one in 32 is searched, until that pays
//     again.
//
// Finding (finder.go): first in the recentCache of the goroutine, by a cheap hash, then in
// the table, by a seeded hash, in eight neighbouring slots. The content decides, never the
// hash.
//
// Deciding (fieldstats.go), for each field, in bytes:
//
//  1. A hit earns the bytes it saved. A miss costs the search, and a kept value its key and
//     slot. A field with a negative balance pauses: one value in 32 is tried. A value that
//     was seen before ends the pause.
//  2. A new value is kept when it is seen for the second time, or at once where that would
//     have paid lately. A seenFilter remembers bits of the hashes.
//  3. A string counts as seen only if another object had it, because the states of one object
//     repeat most strings. A value counts also if the same object had it, while the table is
//     less than a quarter full. Objects are distinguished by eight bits of their UIDs.
//
// Forgetting (table.go): while objects are decoded, a sweep drops the values that the garbage
// collector has freed, and the strings that no other object has asked for in the last round.
//
// # Never shared
//
// Secrets, and types that contain them. A map, and a Go struct in JSON, is a Secret if the
// decoder's kind or its own says so. A [Sharer] leaves objects alone that may be Secrets ([SharerOptions].NoSecrets),
// and types with unexported fields, channels or functions.
//
// A Quantity that has an address, and values that contain one: its String, AsDec and Cmp write to
// it, so that the readers of two objects would race. In a map it has no address, and is
// shared with the map unless its number is behind a pointer.
//
// A value of a type that reads its JSON itself, unless its fields are exported strings, bytes and
// numbers alone.
//
// # Unsafe
//
// Fields are written at an offset from the address of their struct, as package reflect gives
// it. Values are allocated by package reflect, with their own type. All assumptions about
// Go's memory layout are in memory.go, and tested.
//
// # Concurrency properties
//
// All types may be used by several goroutines. Lookups in a table take no lock; additions and
// sweeps take one. Each call of a decoder takes a worker from a pool, which keeps
// its fieldStats: up to eight for each Go type, and eight for all maps. Two goroutines that
// decode at the same time may each make the same value; then it is in memory twice.
//
// An object decoded with [ShareAll] must not be changed; DeepCopy it first. One decoded with
// [ShareStrings] may be changed.
//
// # Memory
//
// A table keeps no message, slice or map alive. It holds their keys, an entry of about 160
// bytes for each, and strings: at most a tenth of the live heap, or 1 MiB if that is
// more, or [Table.MaxBytes]. A shared string keeps its key, of at most 16 KiB, and another
// one the own strings of its object; none keeps a frame.
//
// A worker for pods has about 40 KiB, and at most 256 KiB of recent strings and 1 MiB of
// recent keys. One for Go structs in JSON has 1 MiB of expected keys besides, at most. A Sharer's keeps recent values of at most 256 KiB alive.
//
// Pods of 500 workloads with 40 replicas each, 5.7 KB on the wire, take 5.8 KB and 27
// allocations instead of 21.3 KB and 340, and three tenths of the CPU time (BenchmarkDecode).
// The same pods as 9.4 KB of JSON take as much, and an eighth of the CPU time of the API
// machinery's 190 µs (BenchmarkStructs).
// Custom resources of 3.9 KB of JSON take 2.8 KB and 21 allocations instead of 21.7 KB and
// 496, and an eighth of the CPU time (BenchmarkMaps).
package dedup
