// Package footprint estimates the [Memory] of informers: their objects, their keys and their
// indexes.
//
//	objects   up to 64 of them, walked by reflection: memory that one object has alone counts for
//	          each object, and memory that several share once
//	keys      a few nodes of the store's trees, and the size of its hash table
//	indexes   a few nodes of each index
//
// [Estimates] keeps estimates, because a walk of 64 pods takes about a millisecond.
//
// # Concurrency properties
//
// All functions may be called from any goroutine. They hold no lock of an informer.
//
// # Memory
//
// [Estimates] has one Memory for each informer of its last update, and no reference to one.
package footprint
