// Package rollout has tests only: a controller of replica sets, written with client-go, goes
// through the same scenario under every fault that apisim knows, with Tidings' informers and,
// where TIDINGS_ROLLOUT_FULL is set, with client-go's. After each step the server must have the
// same objects as without the fault, without a pod that was created twice.
//
//	apisim ◀── users: create, scale, delete, relabel
//	   │  ▲
//	   │  └──── controller: create, patch, update, delete ◀── queue ◀── handlers
//	   └──────▶ informers of replica sets and pods: caches ────────────────┘
//
// # Algorithm of the controller
//
//  1. An event of an object puts the key of its replica set into the queue, before and after
//     the change; of a pod without a controller, the keys of all sets that select it.
//  2. A set releases its pods whose labels do not match any more, and adopts those that match
//     and have no controller. Before the first adoption the set is read from the server: it
//     must not be deleted.
//  3. It creates missing pods under the lowest free numbers, and deletes those first that are
//     not ready. It does neither while the cache lacks a write of the controller. After a
//     second, or an error, it asks the server for that pod.
//  4. A pod whose controller is neither in the cache nor on the server is deleted.
//  5. Updates carry the version of the object that was read, patches and deletes its UID.
//
// # Concurrency properties
//
// The controller has one worker, which alone has the list of its writes.
//
// # Memory
//
// The writes that the cache does not show yet are kept.
package rollout
