// Package engine composes an informer of the packages below it: [Collection] is the only
// composition. The native informer and the drop-in for client-go's are façades over it, which
// add their vocabulary and their rules through [Options].
//
//	source ──▶ reflector ──▶ delta.Queue ──▶ Collection.apply ──┬──▶ store ◀── readers
//	(one pair per namespace)     ▲                              │
//	                             │ resyncs                      └──▶ fanout.Log ──▶ handlers
//	                        resync timer
//
// # Algorithms
//
//  1. A collection is claimed once and runs once: [Collection.Claim], [Collection.Run].
//     lifecycle.go has the states.
//  2. Each namespace is a part with a reflector of its own (parts.go). Parts come and go
//     while the collection runs. Where only the server knows whether objects of the type have
//     a namespace, the parts are replaced when it has answered (scope.go).
//  3. One goroutine, the processor, applies a batch of the queue: first the store, then the
//     progress that waiters see, then the log (apply.go). Nothing else changes the cache, but
//     for the writes by hand that client-go's API allows.
//  4. A handler joins under the lock that the processor holds for a batch. So the snapshot
//     that it starts from is the same state as the end of the log.
//  5. Resyncs pass through the queue, so that each comes in order with the changes
//     (resync.go).
//  6. The stop ends the reflectors first, then the processor, then the handlers.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. Locks are taken in this order: those of the
// façade, Collection.parts.changing, Collection.applyMu, then the mutexes, of which no two are
// held together but for parts.mu and lifecycle.mu. The first two are channels ([Lock]):
// index functions and transforms run while they are held, and testing/synctest knows of a
// goroutine that waits for a channel, not of one that waits for a mutex.
//
// # Memory
//
// What store, queue and log say of themselves. A collection that has ended keeps its cache
// for as long as somebody refers to it.
package engine
