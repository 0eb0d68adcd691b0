// Package slot divides objects into 256 slots, by UID or by namespace: a [Set] holds some of them,
// and [Key] is the one of the two by which objects are divided. A [Holding] is the slots that a
// process holds at present, and has its collections follow their changes.
//
//	UID ───────▶ FNV-1a ──────────────▶ top 8 bits ─▶ slot    a slot is a range of hashes
//	namespace ─▶ FNV-1a ─▶ finaliser ─▶ top 8 bits ─▶ slot    a slot is no range
//
// # Algorithms
//
//  1. The hash of a UID is that of Kubernetes' shard selectors, FNV-1a of 64 bits, so that the
//     server can select slots: adjacent ones are one range of the selector.
//  2. FNV-1a barely changes its high bits between names that differ at their end, as namespaces do.
//     The finaliser of SplitMix64 spreads them, so that the server cannot select such slots: a range
//     would have to be a single hash, that of a namespace, and a new namespace is in no range yet.
//
// The selector is that of k8s.io/apimachinery v0.37.1, package pkg/sharding. It has up to 128
// ranges, and so 10 KB.
//
// # Concurrency properties
//
// A Set is a value. The methods of a Holding may be called from any goroutine. Its changes are made
// one after the other; Has and Slots do not wait for them.
//
// # Memory
//
// A Set has 32 bytes.
package slot
