// Package sharedinformer is the informer of the drop-ins: [Informer] implements
// cache.SharedIndexInformer out of the same parts as the native informer, with
// client-go's rules where the two differ.
//
//	source.Source[any] ──▶ reflector ──▶ delta.Queue ──▶ Informer.apply ──┬▶ store ◀── indexer ◀── readers
//	                          │                              ▲            │
//	                          ▼ WatchErrors                  │ look       └▶ fanout.Log ──▶ registration.deliver
//	                   watch error handler             resync clock                              │
//	                                                                                    ResourceEventHandler
//
// [QueueController] is what remains of an informer when a program brings a queue of its
// own, as cache.New lets it: the reflector.
//
// # Algorithms
//
//  1. Everything is held as any: a transform may return any type. Version and UID are
//     asked of what has metadata ([metadata]); the key is that of the object as it was
//     received.
//  2. A batch of the queue becomes one state of the store and one stretch of the log,
//     under the lock that a joining handler takes as well.
//  3. An object that a list finds unchanged is an update, as in client-go, but only for
//     handlers that are syncing: every handler until the resync clock has looked for the
//     first time, and after each look those that were due. The flag is read when the
//     update is delivered; it is set when the look has its turn in the queue.
//  4. The clock looks once per period, counted from the last complete list. The period
//     is that of the informer, or the shortest that a handler asked for before Run; a
//     handler is due when its own has passed ([Informer.look]).
//  5. A failure of the reflector is told to the watch error handler where client-go's
//     ListAndWatch would return an error, with a replica of client-go's reflector that
//     has our version ([WatchErrors]).
//  6. What goes wrong is reported to utilruntime by a goroutine of its own ([reporter]),
//     because error handlers may sleep. Run waits for it at the end. A burst of more than 64
//     reports loses the rest, and the next report says how many.
//  7. A panic in the reflector that utilruntime was told to survive ends the reflector, and
//     another one takes its place ([follow]). One in a Process function costs what it was
//     about.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. Reads of the indexer take no lock. Two
// locks are taken in this order: Informer.mu, which guards what may be set before Run
// and the list of handlers, and Informer.writing, which the processor holds for a batch.
// The processor never takes the first: looks of the clock bring it the handlers along.
//
// Handlers are called on goroutines of their own, one each, which start with Run. A
// handler may call everything of its informer, RemoveEventHandler included, but for
// cache.ShutDownEventHandler of itself, which waits for it.
//
// # Memory
//
// What store, queue and log say of themselves. A handler that does not keep up is bounded
// by the log's default policy: its updates fold.
package sharedinformer
