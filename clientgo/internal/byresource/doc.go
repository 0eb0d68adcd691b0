// Package byresource is what the factories of dynamic and of metadata informers have in
// common: [Factory], informers by resource that are started, waited for and shut down
// together, and [ListWatch], which makes a lister and watcher of two functions.
//
// # Concurrency properties
//
// Everything may be called from any goroutine. The informers' goroutines belong to the
// factory: each ends with the context that it was started with, and Shutdown waits for
// all.
package byresource
