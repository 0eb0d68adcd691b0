// Package resolve turns what a user types into the type that the server has: a
// [Resolver] reads names as kubectl does, a [Type] is what it finds, an
// [UnknownTypeError] names what the user may have meant, a [NotWatchableError] is a
// type that exists and cannot be followed.
//
// # Steps
//
//  1. A name is split at its dots as kubectl splits it: resource, resource.group or
//     resource.version.group; the resource may be plural, singular, a short name or
//     a kind.
//  2. The REST mapper, which knows the server's discovery, finds resource and kind.
//     It asks the server again before it gives up, so that a type that was just
//     installed is found.
//  3. Where it gives up, every name that the server has is compared with what was
//     typed. The distance is the number of letters to insert, delete, replace or
//     swap; about a third of the letters may differ.
//
// # Concurrency properties
//
// A Resolver holds nothing that changes and starts no goroutine. What it asks of
// the mapper and of discovery are requests to the server.
package resolve
