// Package metaindex has the indexes of Kubernetes' metadata, by label and by owner, as functions for package store, and
// [Candidates], which answers a label selector out of them.
//
//	app=web,tier in (a,b),!canary
//	   │        │            └── no index helps: left to the caller
//	   │        └── index of tier: 900 under a and b
//	   └── index of app: 40 under web ──▶ the least, so these 40 are the candidates
//
// # Algorithm of Candidates
//
//  1. Requirements that name values (=, ==, in) of a label that has an index are looked at; the index says how many
//     objects each would yield, without visiting them.
//  2. The requirement with the fewest is answered by its index, within the prefix of the keys.
//  3. Without such a requirement every object of the prefix is a candidate.
//  4. The caller tests each candidate with the whole selector, so an index never decides what matches.
//
// # Concurrency properties
//
// Functions without state; a result belongs to one snapshot.
//
// # Memory
//
// An index costs what package store says. Neither labels nor owners of an unstructured object are copied to be read.
package metaindex
