// Package dedup decodes Kubernetes API objects and keeps their common parts in memory once. Its
// types are [Decoder], for protobuf, [StructDecoder] and [MapDecoder], for JSON into Go structs
// and into maps, [Sharer], for objects that are decoded already, and [Table], which all of them
// share through.
//
// The pods of a workload have most of their bytes in common. Where the generated Unmarshal
// allocates the values of these bytes for each pod anew, a decoder compares the bytes, and
// lets the second pod point to the values of the first:
//
//	bytes of an object
//	  │   layout of the Go type, compiled once for protobuf and once for JSON
//	  ├── number ───────────────────────▶ set
//	  ├── string ──────▶ fieldStats ───▶ paused: ownStrings, one allocation per object
//	  │                      └─ tries ─▶ recentCache ─▶ Table.texts
//	  └── part: the content of a
//	      pointer, slice or map ───────▶ paused: built, field by field
//	                         └─ tries ─▶ recentCache ─▶ Table.values (key: the bytes;
//	                                                    value: a weak pointer)
//
// Objects are deeply equal to those of the generated code or, for JSON, of the API machinery.
// Where an encoding is unusual, these decode the whole object, so that verdict, error and value
// are their own.
//
// # Algorithms
//
// Finding (finder.go), the same for all: look in the recentCache of the goroutine, by a cheap
// hash, then in the table (slots.go), by a seeded hash, in eight neighbouring slots. The content
// decides, never the hash.
//
// Deciding (fieldstats.go) whether to look and which values to keep, for each field, in bytes:
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
// Compiling a Go type (compile.go, structcompile.go) makes a layout, which has the kind, the
// offset and the number or the name of each field. There is one for each [Decoder.Without]: types
// with different fields left out share no values.
//
//  1. For protobuf, the Unmarshal method must be generated, and the type's own: only then do the
//     struct tags describe the encoding. The few handwritten ones are in handwritten.go. The
//     wire type follows from the Go type, because the tags are wrong in places.
//
//  2. For JSON, the names and embedded structs follow the rules of encoding/json. A type that
//     reads its JSON itself is called with a copy of it; common ones, such as Time, are read
//     here (structreaders.go).
//
//  3. A type that leads to Secrets is not compiled, and in protobuf none with a field of an
//     unknown kind. [Decoder.Shares] has the reason.
//
//  4. A view (view.go, cut.go) has a layout of its own Go type, and takes numbers and names from
//     its API type. One struct may be a view of several API types. A message that JSON inlines is laid
//     out at the offset 0 of the same struct. What is not declared is skipped: in JSON its syntax is checked.
//
// Decoding protobuf (proto.go):
//
//  1. Fields must be encoded as Go's encoders write them: in rising order, each once.
//  2. The bytes of a part are its key. If a value of the same Go type was decoded from the same
//     bytes and is in use, it is taken. Otherwise it is built. If it is to be shared, its
//     strings point into a copy of the key.
//  3. Slices have no spare capacity, so that appending to them copies them.
//
// Decoding JSON (mapworker.go, structworker.go):
//
//  1. wire.Tokens cuts the text into tokens and checks its syntax. Texts, depths and numbers
//     that are too large are left to the API machinery.
//  2. The bytes of a part are its key, as in protobuf. In maps, and in interfaces of structs, a
//     part is an object or an array.
//  3. In maps, fields have no Go type: they are learned by name and parent, in a pathTree.
//  4. In structs, a field that comes twice, a value of another type than its field, and any
//     value of a field of kindUnknown are left to the API machinery.
//  5. In structs, a part that was found is expected in the next object, where the same bytes are
//     around its beginning. If it comes there, it is not cut into tokens (expected.go).
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
// # Never shared
//
// Secrets, and types that contain them: [IsSecret] is the one rule. A map, and a Go struct in
// JSON, is a Secret if the decoder's kind or its own says so. A [Sharer] leaves objects alone
// that may be Secrets ([SharerOptions].NoSecrets), and values with fields that are not exported,
// channels or functions.
//
// Values with an address to which methods that only read may write, so that the readers of two
// objects would race: a Quantity, whose String, AsDec and Cmp do, a struct with a field that is not
// exported, and values that contain them. The Go type decides, whether these parts are decoded,
// absent or left out: the methods write to the zero value too. In a map they have no address, and
// are shared with the map, but for a Quantity whose number is behind a pointer.
//
// Values of a type that reads its JSON itself, and values that contain them, unless the fields of
// that type are exported strings, bytes and numbers alone.
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
// recent keys. One for Go structs in JSON has 1 MiB of expected keys besides, at most. A
// Sharer's keeps recent values of at most 256 KiB alive.
//
// Pods of 500 workloads with 40 replicas each, 5.7 KB on the wire, take 5.8 KB and 27
// allocations instead of 21.3 KB and 340, and three tenths of the CPU time (BenchmarkDecode).
// The same pods as 9.4 KB of JSON take as much, and an eighth of the CPU time of the API
// machinery's 190 µs (BenchmarkStructs).
// Custom resources of 3.9 KB of JSON take 2.8 KB and 21 allocations instead of 21.7 KB and
// 496, and an eighth of the CPU time (BenchmarkMaps).
package dedup
