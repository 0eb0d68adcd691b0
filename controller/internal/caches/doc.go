// Package caches has the informers of a controller: an [Informer] says what can be read of its
// cache, and a [Set] has the informers of one controller, the primary first.
//
// # Namespaces and parts
//
// An informer has one watch, or one per namespace: Namespaces returns these, or "" for a watch of
// all. What one watch shows is a part. Versions are kept by part, as the watch of one part need not
// show the changes of another one: [Raise] keeps the newest.
//
// A namespace is absent if calls do without it, as its informer is optional. It is missing while
// calls need it and it is not listed, and cut off while it is missing or its watch fails for long.
//
// # Concurrency properties
//
// Everything may be called from any goroutine, but for WentBack and Failures.Next, which are for
// the checks of the present run, and for Add and Remove, which the caller serializes.
package caches
