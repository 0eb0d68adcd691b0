// Package fleet is the demo's cluster: a [Fleet] creates nodes, deployments, pods and a custom
// type on a simulated API server, and changes them as the users, controllers and kubelets of a
// busy cluster would. A [Change] reports each write.
//
//	seed ─▶ New ─▶ Populate ─▶ apisim.Server ◀─ Step, Step, Step … (Run: so many a second)
//	                              ▲     │               │
//	          other clients ──────┘     └─▶ Touch ──────┘
//
// # Algorithm
//
//  1. A generator of random numbers decides names, sizes and events. The same seed gives the
//     same objects and, while no other client writes, the same writes.
//  2. Each Step makes one write. It continues to reconcile one of a few deployments, or disturbs
//     an idle one: a new image, another size, a crashing container, an evicted pod, a database
//     that fails over. Heartbeats of nodes and changes of configuration come in between.
//  3. Reconciling compares a deployment with its replica sets and pods, as the server has them,
//     and makes the first write that is missing. Rollouts, scaling and replacing pods are all
//     results of this. Each template has a replica set with a revision, which is the newest one
//     after an old template has returned. As many old replica sets stay as the deployment keeps.
//  4. [Fleet.Touch] announces that another client has written in a namespace. Before any other
//     write, and at a rate of its own, the fleet reconciles the deployments of the namespace and
//     deletes the replica sets and pods whose owner is gone. A write that the server refuses is
//     left out: another client has changed the object, or has created a deployment that the
//     server does not accept pods of.
//  5. The fleet neither scales nor updates a deployment whose spec another client has written.
//
// # Concurrency properties
//
// A Fleet is for one goroutine, except Touch, TouchAll, Pause and Resume. It starts no goroutine.
//
// # Memory
//
// The server has the objects. A Fleet keeps a number for each deployment.
package fleet
