// Package gate says which keys no call may begin for, because of an informer: a [Gate] has the
// informers that are out of contact, lack the objects of a namespace, or are behind a version
// ([Behind]) that was written before.
//
//	Check, once a second ──▶ stale, Waits ──▶ IsClosed: the key is parked ──▶ Check: wake all
//
// The steps:
//
//  1. An informer that has received nothing for longer than MaxStaleness closes the gate for the
//     keys that need its objects, in one namespace or in all.
//  2. When a cache can be read for the first time, or a new owner takes over, it may be behind
//     versions that were written before. [Waits] has these until the cache reaches them.
//  3. From time to time the server is asked about each of them: a server that was set back never
//     shows it, and an informer that lags lists again.
//  4. [Gate.Reach] is the bounded wait at the beginning of a term or a slot.
//
// # Concurrency properties
//
// Check is called by one goroutine, and everything else by any. Each question to the server has a
// goroutine of its own, so that one which hangs holds up no other.
package gate
