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
//  2. Each Step makes one write. It continues to reconcile one of a few applications, or disturbs
//     an idle one: a new image, another size, a crashing container, an evicted pod, a database
//     that fails over. Heartbeats of nodes and changes of configuration come in between.
//  3. Reconciling compares the deployment of an application with its replica sets and pods, as
//     the model holds them, and makes the first write that is missing. Rollouts, scaling and
//     replacing pods are all results of this.
//  4. [Fleet.Touch] announces that another client has written in a namespace. The next Step lists
//     the namespace and rebuilds the model of it: deployments that another client has created
//     become applications, and what deleted deployments have left behind is deleted. A write
//     that conflicts with another client's has the same effect.
//  5. The fleet neither scales nor updates a deployment that another client has changed.
//
// # Concurrency properties
//
// A Fleet is for one goroutine, except Touch. It starts no goroutine.
//
// # Memory
//
// The model keeps each object once, as the server returned it.
package fleet
