// Package objects has functions for the usual writes of a reconcile function: finalizers
// ([AddFinalizer], [RemoveFinalizer]), the status ([UpdateStatus]), and objects that an object
// controls ([Apply], [ControllerRef]).
//
//	cached object ──▶ equal to the wanted one? ── yes ──▶ no request
//	                        │ no
//	                        ▼
//	                  one write with the client ──▶ the server's answer
//
// # Rules
//
//  1. A function sends nothing if the cached object is as wanted. So a call that only follows its
//     own writes ends the chain of calls.
//  2. The cached object is not changed.
//  3. Finalizers and status are written with the version of the cached object. If the server has
//     a later one, it answers with a conflict, for which apierrors.IsConflict is true. Return the
//     error: the controller calls again when its cache has caught up.
//  4. An object may be a view, but for [UpdateStatus] and [Apply], which write whole objects: then
//     the status is written with [PatchStatus], and the client is one of the whole type.
//  5. Server-side apply has no version. It takes over fields that other managers own.
//
// Conditions need no function here: call meta.SetStatusCondition in the function that is given to
// [UpdateStatus]. It takes metav1.Condition. Types such as Deployment have conditions of their own
// type: find the one with the type to set in the slice, and change it or append one.
//
// A type of a custom resource needs no generated client: [NewClient] makes one.
//
// Use a client that is made from the Config of a controller.Guard and the context of the call:
// only then does the next call of the key wait until the caches show the write.
//
// # Concurrency properties
//
// The functions keep no state, and may be called from any goroutine.
//
// # Memory
//
// A call copies the object if it may have to write.
package objects
