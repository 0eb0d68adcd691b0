// Package tape keeps the answers and events of sources in memory: a [Ring] keeps the newest
// [Record]s of any number of [Writer]s, and a [Recording] is a copy of them, with a [Track] for
// each writer.
//
//	source.Record ──▶ Writer ──┐
//	source.Record ──▶ Writer ──┼──▶ Ring: segment, segment, …, segment ──▶ Recording
//	source.Record ──▶ Writer ──┘         oldest               newest
//
// # Algorithms
//
//  1. A write copies the texts and the data of a record into the newest segment, which has room for
//     a 32nd of [Options.MaxBytes], at most for 1 MiB, or for one larger record.
//  2. With a writer's first record in a segment, the ring asks the writer for the state of its
//     cache. This is the base of the writer if the segment becomes its oldest one.
//  3. When the segments are larger than MaxBytes, or the newest record of the oldest
//     segment is older than [Options.MaxAge], the oldest segment is dropped as a whole.
//  4. A record that is larger than a quarter of MaxBytes is kept without its bytes.
//
// # Concurrency properties
//
// Any number of goroutines may use a Ring; a Writer belongs to one at a time. One mutex guards the
// segments. It is held for a copy of bytes, and never while a recording is encoded.
//
// # Memory
//
// A record counts its head and its bytes, and its data a second time: a base keeps the object that
// the record's object has replaced in the cache. The fields of a record that have pointers count
// [extraBytes] and their texts. The table of a cache is copied on write, and the nodes of its tree
// that are kept for a base do not count.
package tape
