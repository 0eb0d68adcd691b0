// Package tidings keeps local, indexed copies of collections of Kubernetes API
// objects and calls handlers with every change. A [Factory] shares one [Informer] among all
// callers that ask for the same [Selection] of the same type. A [Lister] reads its cache.
// A [Handler] with its [Registration] receives every change.
//
// # Usage
//
//	factory, err := tidings.NewFactory(config, tidings.FactoryOptions{})
//	pods, err := tidings.For[*corev1.Pod](factory, tidings.Selection{Namespaces: []string{"shop"}})
//	_, err = pods.AddHandler(tidings.Funcs[*corev1.Pod]{OnUpdate: changed}, tidings.HandlerOptions{})
//	err = factory.Start(ctx)
//	err = factory.WaitForSync(ctx)
//	pod, err := pods.Lister().Namespace("shop").Get("web-0")
//	err = factory.Shutdown(context.Background()) // after the end of ctx
//
// # Parts
//
//	   Factory ── For[T], View[V, T], Dynamic, Metadata ──▶ Informer[T]  (a counted handle)
//	                                                     │
//	┌────────────────────────── one collection ──────────▼───────────────────────┐
//	│  source ─▶ reflector ─▶ delta.Queue ─▶ processor ─▶ store ─▶ fanout.Log ─▶ │ ─▶ Handler
//	│  (one pair per namespace)                             ▲                    │
//	└───────────────────────────────────────────────────────│────────────────────┘
//	                                         Lister ────────┘ reads, never waiting
//
// # What happens to a change
//
//  1. A reflector reads it off a watch, or finds it in a list, checks that it
//     belongs to the selection, and runs the transform.
//  2. The queue orders it with all other changes, compares it with the cache, and drops it if it
//     is old or changes nothing.
//  3. The processor applies a whole batch to the store as one step, indexes
//     included, and publishes it to the log. Readers see all of a batch or none.
//  4. Every handler follows the log with a cursor and a goroutine of its own.
//
// Package reflector describes how the collection follows the server, package delta how a list
// is compared with the cache, package store how snapshots work, and package fanout which
// changes a slow handler receives. ARCHITECTURE.md has a table that leads from every property
// of the contract to its place.
//
// # Concurrency properties
//
// Everything here may be called from any goroutine. Calls of one handler never
// overlap; calls of two handlers do. A handler may call anything, including
// AddHandler and Remove, but must not wait for its own removal.
//
// # Memory
//
// An object is held once, by the store. The log holds the changes that the slowest handler has
// not received, up to its limit (see [HandlerOptions]). Releasing the last
// handle of an informer frees all of it, unless a Lister of it or a snapshot is held.
//
// # Terms
//
// A program that runs its informers while it is the leader starts the factory with a
// context for each term. An informer runs once: for the next term, ask the factory for it
// again and start the factory with the new context, as soon as the old one has ended. The
// informers of the old term end by themselves.
//
// # What a caller must do
//
// Treat every object that comes from here as read-only, for it is shared: call
// DeepCopy before changing one. Start the factory before waiting, and wait for
// the first sync before acting on the absence of an object from a cache.
package tidings
