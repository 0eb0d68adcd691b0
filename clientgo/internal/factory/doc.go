// Package factory is the common part of the factories of typed, dynamic and metadata informers:
// [Factory] shares informers by a key, [New] makes an informer, [Drop] has the fields that are
// left out, and [Connect] makes the client of our own source.
//
//	Spec.Open ───────▶ our own source ──────────────────────────┐
//	                                                            ├─▶ sharedinformer.Informer
//	Spec.ListWatch ──▶ client-go's client ──▶ drop, then share ─┘
//
// Our own source leaves fields out and shares parts of objects while it decodes. Objects
// that a client of client-go has decoded lose the same fields and share the same parts
// afterwards. The cached objects are equal either way.
//
// # Concurrency properties
//
// Every function may be called from any goroutine. A factory owns the goroutines of its
// informers: each ends with the context that it was started with, and Shutdown waits for all
// of them.
//
// # Memory
//
// A factory holds an informer with its cache for each requested key, as long as the factory
// itself is referenced.
package factory
