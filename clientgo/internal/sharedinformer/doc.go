// Package sharedinformer is the informer of the drop-ins: [Informer] implements
// cache.SharedIndexInformer, and [Dedicated] adds one handler to it. An Informer is a façade over
// an engine.Collection of any, to which it adds the rules of client-go as engine.Options.
//
//	source.Source[any] ──▶ engine.Collection[any] ──▶ registration.deliver ──▶ ResourceEventHandler
//	                          │            │
//	                          │            └── store ◀── indexer ◀── readers
//	                          └── failures ──▶ watch error handler, reporter ──▶ utilruntime
//
// # Rules of client-go
//
//  1. Objects are held as any, because a transform may return any type. The key is that of the
//     object as it was received.
//  2. An object that a list finds unchanged is an update for the handlers that are syncing. That
//     is every handler until the first decision of the resync timer, and then the handlers that
//     were due at the last decision. A decision goes through the delta queue as a token, and
//     takes effect after the changes before it.
//  3. The resync timer decides once per period, which begins with the last complete list. The
//     period is that of the informer, or the shortest one that a handler requested before Run.
//  4. The watch error handler is called where client-go's ListAndWatch returns an error. It
//     receives a cache.Reflector with the version of ours.
//  5. Other errors are reported to utilruntime by a [reporter], which has a goroutine of its own,
//     because error handlers may sleep. Run waits for this goroutine at the end. More than 64
//     pending reports are dropped, and the next report has their number.
//  6. utilruntime handles a panic of a reflector or a handler. If it does not crash the process,
//     the reflector is started again ([supervise]), and a handler continues with the next
//     notification, after a second.
//  7. Objects that the program has written to the cache itself, or deleted there, have no version
//     until the server reports them ([manualWrites]): every event is applied to what the cache
//     holds by then. A write by hand whose index function fails panics in the caller's goroutine.
//  8. The delete of an object that a fake has never added reaches the handlers.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. Reads of the indexer take no lock. Informer.mu is
// taken before the locks of the collection. The hooks that run while a batch is applied do not
// take it: a decision brings the handlers along.
//
// Each handler is called on a goroutine of its own, which starts with Run. A handler may call all
// methods of its informer, RemoveEventHandler included, but not cache.ShutDownEventHandler with
// its own registration, which waits for the handler.
//
// # Memory
//
// The memory is that of the collection. The default policy of package fanout, which folds
// updates, bounds the notifications of a slow handler.
package sharedinformer
