// Package terms has what passes from one holder of a term to the next: a [Succession] waits for the
// versions that the last holder has written, and leaves those of this one. A [Shared] term collects
// the versions of all controllers of a manager.
//
//	HandOver of the term ──▶ TakeOver: the caches reach the versions ──▶ calls ──▶ Leave ──▶ Reached of the term
//
// Both methods of a term are optional. A term without HandOver begins at once, and one without
// Reached leaves nothing. Versions that are not known, as after a crash, are nil: the next holder
// asks the server.
//
// # Concurrency properties
//
// A Succession is of one run, whose goroutine calls its methods. A Shared may be used by any
// goroutine.
package terms
