// Package byresource is what the factories of dynamic and of metadata informers have in
// common: [Factory], informers by resource that are started, waited for and shut down
// together; [NewInformer], which makes one out of a [Making]; and [ListWatch], which makes a
// lister and watcher of two functions.
//
//	Making.Reads, Making.Open ──▶ our own source ─────────────────┐
//	                                                              ├─▶ sharedinformer.Informer
//	Making.ListWatch ──▶ listwatch.Clearing ──▶ shared afterwards ┘
//
// A client that brings a source.Client along is read with our own source, which leaves
// fields out and shares while it decodes. What another client has decoded is cleared of the
// same fields and shared after that. The objects are equal either way.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. The informers' goroutines belong to the
// factory: each ends with the context that it was started with, and Shutdown waits for
// all.
//
// # Memory
//
// A factory holds an informer, with its cache, for each resource that was asked for. None is
// ever let go.
package byresource
