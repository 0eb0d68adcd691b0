// Package fleet is the demo's cluster: a [Fleet] creates nodes, deployments and pods on a
// simulated API server, and runs controllers and users that change them.
//
//	seed ─▶ New ─▶ Populate ─▶ apisim.Server ◀──HTTP── kubectl and other clients
//	         │                  ▲    │
//	         │            HTTP  │    └─ watches ─▶ informers ─▶ controllers ─┐
//	         └─▶ users ─────────┴──────────── guard ◀────────────────────────┘
//
// # Controllers
//
// They are written with package controller, on one factory with one guard. One manager runs them:
// that of [Fleet.Manager], or those of [NewReplica] in several processes, which divide the
// namespaces. Through their informers, they react to the writes of all clients.
//
//  1. deployments: each template has a replica set with a revision, which becomes the newest one
//     when an old template is used again. A rollout moves one pod after the other to it, each when
//     the one before is ready. The deployment's limit of old replica sets holds. While a deployment
//     is paused, its replica sets keep their pods, and only the newest follows the size of the
//     deployment.
//  2. replicasets: each replica set has the number of pods in its spec. A replica set whose
//     deployment is gone is deleted.
//  3. pods, in the place of the scheduler and of all kubelets: a pod gets a node, its containers
//     start after a moment, also after a crash, and its grace period ends at once. A pod whose
//     replica set is gone is deleted.
//
// # Users
//
// Users release images, scale, break and evict pods, and write configurations. They write while
// there are fewer writes a second than the argument of [Fleet.Manager]. The writes of the
// controllers count, also those of replicas. After a period of many writes, users wait for at most
// twenty seconds. They neither scale nor update a deployment whose spec another client has changed.
//
// # The seed
//
// The same seed gives the same objects and the same acts of users, in the same order. Other things
// differ from run to run: the time between the acts, the order in which the controllers write, the
// names of new pods, and so the pod that an act affects.
//
// # Concurrency properties
//
// A Fleet is for one goroutine. The manager waits for all goroutines that it starts, as
// controller.Manager does.
//
// # Memory
//
// The server has the objects. The controllers have a second copy in the caches of their informers,
// whose objects share their equal parts.
package fleet
