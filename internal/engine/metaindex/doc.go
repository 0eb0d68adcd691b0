// Package metaindex has the indexes of Kubernetes' metadata, by label and by owner reference, as
// functions for package store, and [Candidates], which uses them for a label selector. [Requirements]
// looks into selectors whose type is known.
//
//	app=web,tier in (a,b),!canary
//	   │        │            └── no index helps: the caller tests it
//	   │        └── index of tier: 900 under a and b
//	   └── index of app: 40 under web ──▶ the least, so these 40 are the candidates
//
// # Algorithm of Candidates
//
//  1. For each requirement that names values (=, ==, in) of a label with an index, the index
//     counts its objects, without visiting them.
//  2. The index of the requirement with the fewest objects yields the candidates, within the
//     prefix of the keys.
//  3. Without such a requirement every object of the prefix is a candidate, and so it is for a
//     selector of the program's own, whose requirements say nothing of what it matches.
//  4. The caller tests each candidate with the whole selector.
//
// # Concurrency properties
//
// Functions without state; a result belongs to one snapshot.
//
// # Memory
//
// The cost of an index is that of package store. Labels and owner references of an unstructured
// object are read without a copy.
package metaindex
