// Package dedup decodes Kubernetes API objects and makes what they have in common only
// once: a [Decoder] decodes the [Message] values of one Go type from protobuf, a
// [MapDecoder] the maps of unstructured objects from JSON, and a [Sharer] takes objects
// that are decoded already. A [Table] knows what they have made, and [Sharing] says what
// is shared; [DecoderStats], [SharerStats] and [TableStats] show how that goes.
//
// The pods of a workload have most of their bytes in common. The generated Unmarshal
// makes the values of these bytes anew for each pod, and the garbage collector walks
// them ever after. Here the bytes are compared instead, and the second pod points
// to what the first one has. Objects are deeply equal to what the generated code
// makes; there is nothing to configure.
//
//	bytes of an object
//	  │
//	  ▼  program of the Go type, compiled from its struct tags
//	message ── number ───────────────────────────────▶ set; a pointer to one seen lately
//	  │    └── message in the struct itself ─────────▶ its own program
//	  │    └── string ──────────────▶ site ─ rests ──▶ collected: one copy per object
//	  │                               │ tries
//	  │                               ▼
//	  │                    recent ─▶ Table.texts ────▶ the string that is there
//	  │
//	  └─────── message behind a
//	           pointer, slice, map ─▶ site ─ rests ──▶ built, field by field
//	                                  │ tries
//	                                  ▼
//	                       recent ─▶ Table.pieces ───▶ the value that is there
//	                                    │     ▲
//	                      key: the bytes    value: a weak pointer
//
// # Algorithms
//
// Compiling a Go type, when a decoder of it is first used:
//
//  1. The Unmarshal method of the type must stand in a file generated.pb.go and be the
//     type's own, not promoted from an embedded field: only then do the tags say
//     all. Time, MicroTime, Quantity, FieldsV1, and the slices of strings that are
//     messages (Verbs, the ExtraValues, AttestationValue) are known by hand.
//  2. Each field with a tag becomes a step: number, offset in the struct, what is
//     there by its Go type. Wire type and repetition follow from the Go type, as in
//     the generator; the tags are wrong about both in places.
//  3. A type with a field of a kind that API types do not have is left to its own
//     Unmarshal as a whole, as is Secret: [Decoder.Shares] says so.
//  4. A field that [Decoder.Without] leaves out becomes a step that passes over its
//     bytes: they must be as many as their length says, and that is all. Its type may be of any
//     kind. Programs, sites and what is shared go by the Go type together with
//     what is still to be left out within it, so that a value without a field is
//     never taken for one with it.
//
// A type that contains itself, as the schema of a CustomResourceDefinition does, is left to
// the generated code at a depth of 100. Before that, the depth is counted by the fields that
// lead there: beyond 10,000 messages in one another the object is refused.
//
// Decoding a message:
//
//  1. Fields must come as Go's encoders write them: in rising order, each with the
//     wire type it should have, the elements of a slice or map one after the other.
//     Unknown fields are skipped. No other form is understood: a message that
//     comes twice and is to be merged, falling order, packed numbers, groups. Then
//     the object is given up and the generated code decodes it from the start, so
//     that verdict and value are its own. [DecoderStats] count this.
//  2. A string is shared, or collected: all strings that an object has for itself
//     become parts of one allocation in the end.
//  3. The bytes of a message behind a pointer, of all elements of a slice, or of all
//     entries of a map are a key. If a value of the same Go type was made of the
//     same bytes, and is in use, it is taken. Otherwise it is built, its parts in
//     the same way. If it is to be shared from now on, the key is copied first and
//     the strings of the value point into the copy.
//  4. A slice ends where its memory does, so that to append to it is to copy it.
//
// Finding a value: first by a cheap hash among those that the same goroutine
// found lately, which is where the next pod of the same workload finds most; then
// in the table, by a hash with a random seed, in eight neighbouring slots. The
// bytes decide, never the hash. Eight slots are all that is ever looked at; what finds
// no room there makes the table grow, or displaces another.
//
// Whether to try, decided for each field of each Go type by its site, an
// account in bytes:
//
//  1. A hit earns the bytes it saved. A miss costs what it took to look, and a value
//     that is put into the table costs its key and its slot.
//  2. An account that is overdrawn rests: of 32 values, one is tried, by chance. One
//     that was seen before, however long ago, ends the rest.
//  3. A new value is put into the table when it is seen for the second time: the
//     table keeps some bits of the hashes it has seen. Where keeping each new value
//     at once would have paid lately, that is done.
//
// What an object has in all its states is no repetition: it would fill the table with
// what no other object has. Objects are told apart by eight bits of their UIDs, so that
// one in 255 is taken for another:
//
//  1. A string counts as seen when another object had it. A value behind a pointer, a slice
//     or a map also counts when the same object had it in an earlier state, because it is
//     then not decoded again, but only while the table is less than a quarter full.
//  2. What an object finds that it has brought itself counts as kept in vain.
//
// Forgetting: while objects are decoded, a hand goes round the table, four slots of
// values and two of strings per object, eight of strings while the table is more than half
// full. It drops values that the garbage collector has taken, and strings that no object but
// the one that brought them asked for since it came by last.
//
// # Maps
//
// A MapDecoder makes of JSON what the API machinery makes of it, the maps and slices of
// interfaces that unstructured objects are. Everything above holds, but for this.
//
//	text ──▶ tokens: where each value begins and ends, how much is in it
//	             │
//	             ▼
//	         object ── name ─────────────▶ place: what was learned of this field
//	             └──── value ─ string ───▶ place's site for texts ─────▶ as above
//	                    └──── { } or [ ] ▶ place's site for subtrees ──▶ as above
//
// Decoding a text:
//
//  1. The text is read once, from the front to the back: its syntax is checked, and each
//     value becomes a token that says where it ends. Thus the bytes of an object or array
//     are known before anything of it is made, and what was seen before is never looked
//     into, only compared. What is left out of the objects is passed over. What is over 1
//     GiB or 100 levels, and what has a number that a float64 may not hold, is left to the
//     API machinery, and so is everything that is not JSON: [DecoderStats] count it.
//  2. The bytes of an object or array are the key of the map or slice that they mean. The
//     same labels in two fields, or in objects of two kinds, are one map. What is left out
//     is part of the key.
//  3. There are no Go types to tell fields apart. A run learns them: a place is a field
//     of a name in the object at another place, for each kind of object. Names are looked
//     for where they were the last time, which costs one comparison and allocates
//     nothing. A name gets a place when it is seen again, so that keys of data do
//     not. A run has 16,384 places at most; if it needs more it learns anew.
//  4. A string in an interface is a pointer to a string. Those of the table are pointed
//     to where they are; for those that an object has for itself there is one
//     allocation, and one more for their bytes.
//  5. The map of an object itself is its own: the kind can be set in it.
//
// Custom resources of 200 workloads with 100 replicas each, 3.9 KB of JSON, take 2.8 KB in
// memory and 21 allocations, where the API machinery takes 21.7 KB and 496, and about an
// eighth of the CPU time. If each has a workload of its own, that is 11.6 KB, 73
// allocations and a half; if only the names of the fields repeat, 17.7 KB of 19.7, 129 of
// 489 and two fifths (BenchmarkMaps).
//
// Go structs that come in JSON are decoded by others; a Sharer takes them then.
//
// # Objects that are decoded already
//
// A [Sharer] does the same for objects that something else has decoded. The values
// themselves are compared, so that no keys are kept:
//
//		object ─▶ account of objects ─ rests ──▶ the object itself (but for one in 32)
//		             │ tries
//		             ▼  layout of the Go type, compiled from its fields
//		pointer, slice, map ─▶ site ─ rests ───▶ its parts, one by one
//		             │ tries
//		             ▼
//		found lately in this place, and equal ─▶ that value
//		             │ no
//		             ▼ hash, with a seed, of all that it leads to
//		         Table.pieces, and equal ──────▶ the value that is there
//		             │ no
//		             ▼
//		seen before ─▶ a copy, down to the last pointer, is put into the table
//
//	 1. Values are equal if all their bits are, strings, slices and maps by their content:
//	    a NaN equals the same NaN, nil is not empty. The hash decides only where to look.
//	 2. What was given is only read. Where parts of a struct or a slice are to be replaced,
//	    it is copied, if that saves a third of the copy's size. So for the object itself;
//	    what is in no other object is in both, the one that was given and the result.
//	 3. Values in the table are copies: what the owner of an object does to it later shows
//	    in no other object.
//	 4. Each object in which little was found counts against all; after some of them one in
//	    32 is looked at, with all of its fields, until that pays again.
//	 5. Trees of maps and slices, as unstructured objects have, have their sites by the name
//	    of the field.
//
// Left alone, with a reason in [SharerStats], are Secrets, objects that do not say whether
// they are Secrets, and types with fields that are not exported, channels or functions
// in the struct itself. Behind pointers, those are left as they are. So is what stands in
// an interface, a value nested deeper than 100, and what remains of an object in which a
// million values were visited.
//
// # What is never shared
//
// A Quantity that has an address (a field, behind a pointer, in a slice): its
// String, AsDec, Cmp and others write to it, so that two readers of two objects
// would race. What contains one is not shared either; its other parts are. A
// Quantity in a map has no address and is shared with its map, unless its number
// is behind a pointer, as those beyond 64 bits are: copies of it share the number,
// and Add changes it.
//
// Secrets, and types that contain them: nothing of them enters a table. A map is a Secret
// if the decoder's kind or its own says so.
//
// # Unsafe
//
// Fields are written through the address of their struct and an offset, without
// reflection. An offset is the one that package reflect gives for the field, and is
// used for nothing but structs of the type it was asked of: Unmarshal checks the type
// of the root, and the program of a type leads to the programs of its fields' types.
// Values are allocated by package reflect, with their own type. Beyond that, it is
// relied on that a slice is a pointer, a length and a capacity, that a map is a
// pointer, and that strings may point into bytes that nobody writes to. For maps: that an
// interface is a pointer to its type and a pointer to its value, or the map itself.
//
// # Concurrency properties
//
// A Table is for any number of goroutines. Lookups take no lock. What is new is put in
// under one lock, and so is the hand moved, by whichever decoder comes by while no
// other one is at it. Give all decoders of a process that trust each other the same
// table: then informers of several namespaces, or two goroutines that decode one
// list, share with each other.
//
// A Decoder, too, is for any number of goroutines. Each call takes a run: what one
// goroutine knows about sites, with its buffers. Up to eight runs for each Go type wait
// in the table for the next call of any decoder, so that what was learned stays. A
// MapDecoder does the same, with up to eight runs for all kinds.
//
// In plain words: two goroutines that decode at the same time may each make a value
// that the other makes, and then there are two of it, which is harmless. An object
// that was decoded with [ShareAll] may be read by anyone and changed by nobody, like
// any object in a cache; to change it, DeepCopy it. One decoded with [ShareStrings]
// is as free as one of the generated code.
//
// # Memory
//
// A table keeps no message, slice or map alive. It holds their keys and a record of
// 160 bytes for each, and strings: together at most a sixteenth of the heap that is alive, or 1
// MiB if that is more, or [Table.MaxBytes]. Above that nothing new is put in. The key
// of a value that is gone stays until the hand comes by, that is, at most until a
// quarter as many objects were decoded as the table has slots.
//
// A string keeps what it was allocated with: the key of a shared value, of at most 16
// KiB; or the object's own strings of up to 256 bytes. It never keeps a frame.
//
// A Sharer puts no keys into the table, but the values that it found lately, of at most
// 512 bytes and together at most 256 KiB for each run, are kept alive.
//
// The table has a run for each goroutine that has decoded objects of one type at the
// same time, at most eight. For pods that is about 40 KiB, with up to 256 KiB of
// strings and 1 MiB of keys that were found lately in the worst case. A decoder itself
// has nothing. The key of a shared value has the bytes of the fields that are left out
// of it, too. A run for maps has about 20 KiB, about 64 bytes for each place, and the tokens of
// the largest text it has read, up to 384 KiB.
//
// Pods of 500 workloads with 40 replicas each, 5.7 KB on the wire, take 5.8 KB in
// memory and 27 allocations, where the generated code takes 21.3 KB and 340; 5.0 KB of
// that is what each of them has for itself. The CPU time is about three tenths, the
// garbage collector's included (BenchmarkDecode).
package dedup
