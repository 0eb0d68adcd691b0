// Package engine composes an informer from the packages below it: [Collection] is the only
// composition. The native informer and the drop-in for client-go's are façades over it, which add
// their vocabulary and their rules through [Options].
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
//  2. Each namespace is a part with a reflector of its own (parts.go). Parts come and go while the
//     collection runs (namespaces.go). Where only the server knows whether objects of the type have
//     a namespace, the parts are replaced when it has answered (namespaces.go).
//  3. One goroutine, the processor, applies a batch of the queue: first the store, then the
//     progress that waiters see, then the log (apply.go). Nothing else changes the cache, except
//     the writes by hand that client-go's API allows.
//  4. A handler joins under the lock that the processor holds for a batch. So the snapshot that it
//     starts from is the same state as the end of the log.
//  5. Resyncs pass through the queue, so that each comes in order with the changes (resync.go).
//  6. Objects that something else has decoded share their parts: listed objects before they are
//     cached, watched ones when they have been quiet (latesharing.go). Then an equal object takes
//     their place in the cache, and no handler receives that.
//  7. With Options.Slots, a collection holds only the objects of some slots. Slots that come are
//     one list per part beside its watch, and slots that go are a batch of deletes (parts.go).
//  8. The stop ends the reflectors first, then the processor, then the handlers.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. Locks are taken in this order: the façade's,
// parts.changeMu, applyMu, parts.mu, resyncs.mu, goroutines.mu, then the mutexes of the lifecycle,
// the progress, the queue and the log, of which no two are held together. Options.OnNamespaces runs
// under parts.mu: a lock that it takes must never be held by a caller that changes namespaces or
// asks for health. parts.changeMu and applyMu are channels ([Lock]): index functions and transforms
// run while they are held, and testing/synctest notices a goroutine that waits for a channel, but
// not one that waits for a mutex.
//
// # Memory
//
// Packages store, delta and fanout describe theirs. A collection that has ended keeps its cache for
// as long as something refers to it.
package engine
