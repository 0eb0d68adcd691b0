// Package store holds a collection of objects by key, with indexes: a [Store] has
// one state at a time, a [Batch] makes the next one, a [Snapshot] keeps one, an
// [Index] finds objects by what an [IndexFunc] says of them.
//
//	Store ──atomic pointer──▶ state n ─┬─ objects: B-tree  key → object
//	                                   ├─ indexes: name → B-tree  (value, key) → object
//	                                   └─ version
//	                                       ▲
//	Snapshot ──────────────────────────────┘   (or an older state; nothing changes it)
//
// # Algorithms
//
//  1. Update takes the writers' lock, copies the trees of the present state in O(1)
//     (they share their nodes until one side writes), runs its function on the
//     copies and publishes them together by one atomic store. A function that
//     panics publishes nothing.
//  2. Set writes the object and, for every index, removes the entries of values
//     that no longer hold and writes those that do: O(log n) each.
//  3. Get, All, Prefix and Lookup load the pointer once and read immutable trees.
//     Prefix seeks to the prefix and stops at the first key beyond it; so does
//     Lookup in the index, by value.
//  4. AddIndex builds the tree of the new index from the present state and
//     publishes it as a state of its own.
//
// An index function that returns an error, or panics, costs the object its entries
// in that index. That is reported to [Options.OnIndexError] and counted, and
// nothing else happens.
//
// # Concurrency properties
//
// Readers take no lock and never wait for a writer. Writers wait for each other.
// In other words: a list that takes a second sees one state from beginning to end,
// and the writer goes on meanwhile. Index functions run on the writer's goroutine,
// under the writers' lock: they must not call Update or AddIndex of their store.
//
// # Memory
//
// A key costs its string header and the object's pointer in a tree node that is
// between half and completely full, and an index entry 40 bytes more in the same
// way. A snapshot costs nothing by itself; while it is held, nodes that were
// written since exist twice, and replaced objects stay.
//
// # What a caller must do
//
// Treat objects as read-only. Let go of snapshots.
package store
