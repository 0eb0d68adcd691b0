// Package terms has what passes from one holder of a term to the next: a [Succession] waits for the
// versions that the last holder has written, and leaves its own. A [Shared] term collects the
// versions of all controllers of a manager.
//
//	Term.HandOver ──▶ TakeOver: the caches reach the versions ──▶ calls ──▶ Leave ──▶ Term.Reached
//
// Both methods of a term are optional. Versions that are not known, as after a crash, are nil: the
// next holder asks the server.
//
// # Concurrency properties
//
// One goroutine calls the methods of a Succession. A Shared may be used by any.
package terms
