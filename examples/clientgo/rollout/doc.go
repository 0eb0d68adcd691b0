// Package rollout is a controller of deployments and replica sets, written with
// client-go alone: a [Controller] makes replica sets for deployments and pods for
// replica sets, adopts and releases both by their labels, keeps the status of both,
// and deletes what has lost its owner.
//
//	informers ──▶ caches ───────────────┐ read
//	    │                               ▼
//	    └ handlers ──▶ queues ──▶ workers ──▶ create, patch, update, delete
//	                     ▲          │
//	                     └──────────┘ again, later, when it failed
//
// # Algorithms
//
//  1. An event of an object puts into a queue the key of the object and that of its
//     controller, before and after the change; without a controller, the keys of all
//     owners whose selector matches its labels.
//  2. A worker compares the caches with what should be. An owner claims the objects
//     of its namespace: one of its own whose labels do not match any more is released,
//     and one without controller whose labels match is adopted. Before the first
//     adoption, the owner is read from the server: it must not be deleted.
//  3. A deployment has one replica set for each template that it had, named by the
//     hash of the template. The newest gets the wanted replicas at once; the others
//     together keep as many as the newest has not ready. Before it creates one, it
//     asks the server for those of the template: its cache may be late.
//  4. A replica set that has too few pods creates some under the lowest free numbers
//     after its name. One that has too many deletes those first that are not ready,
//     then the newest, then the last by name. It does neither, nor counts, while the
//     cache lacks a pod that it created or has one that it deleted. If that lasts, or
//     the answer to a write was an error or did not come, it asks the server for that
//     pod: so nothing is done twice, and nothing is waited for that was not done.
//  5. An object whose controller is neither in the cache nor on the server is
//     deleted: this is the work of the garbage collector, which not every server has.
//  6. Every write holds only for the object that was read: updates carry its version,
//     patches and deletes its UID. What fails is tried again, later each time.
//
// # Concurrency properties
//
// Run may be called once. It returns when all goroutines of the controller have ended.
// Workers share the caches, which they only read, and the client. The queue gives a
// key to one worker at a time, which alone has what is remembered of its writes.
//
// # Memory
//
// The caches hold all deployments, replica sets and pods where the factory looks. What
// is remembered of writes goes when the cache shows them.
//
// # What a caller must do
//
// Make a factory of informers, client-go's or any other of that interface; give it to
// New, start it, call Run, and shut it down afterwards.
//
// # What is left out
//
// The strategy, the pause, minReadySeconds, the deadline and the history limit of a
// deployment have no effect, and there are no conditions: old replica sets stay, empty.
package rollout
