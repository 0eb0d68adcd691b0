// Package fleet is the demo's cluster: a [Fleet] creates nodes, deployments, pods and a custom
// type on a simulated API server, and runs controllers and users that change them.
//
//	seed ─▶ New ─▶ Populate ─▶ apisim.Server ◀──HTTP── kubectl and other clients
//	         │                  ▲    │
//	         │            HTTP  │    └─ watches ─▶ informers ─▶ controllers ─┐
//	         └─▶ users ─────────┴──────────── guard ◀────────────────────────┘
//
// # Controllers
//
// They are written with package controller, on one factory with one guard, and one manager runs
// them: that of [Fleet.Manager], or those of [NewReplica] in several processes, which divide the
// namespaces. They react to everybody's writes, through their informers.
//
//  1. deployments: each template has a replica set with a revision, which is the newest one
//     after an old template has returned. A rollout moves one pod after the other to it, when
//     the one before is ready. As many old replica sets stay as the deployment keeps. While a
//     deployment is paused, its replica sets keep their pods, and only the newest follows its
//     size.
//  2. replicasets: each replica set has as many pods as it asks for. One whose deployment is gone is
//     deleted.
//  3. pods, in the place of the scheduler and of all kubelets: a pod gets a node, its containers
//     start after a moment, also those that have crashed, and its grace period ends at once. One
//     whose replica set is gone is deleted.
//  4. databases: a failover of the custom type ends.
//  5. nodes: heartbeats, if there are users.
//
// # Users
//
// Users release images, scale, break and evict pods, make databases fail over, and configure. They
// write while there are fewer writes a second than [Fleet.Manager] is given; those of the controllers
// count, also of replicas. After a time of many writes they wait for at most twenty seconds. They neither scale nor
// update a deployment whose spec another client has changed.
//
// # What the seed decides
//
// The same seed gives the same objects and the same acts of users, in the same order. What follows
// differs from run to run: how much time passes between the acts, in which order the controllers
// write, the names of new pods, and so also which pod an act hits.
//
// # Concurrency properties
//
// A Fleet is for one goroutine. The manager waits for all goroutines that it starts, as
// controller.Manager does.
//
// # Memory
//
// The server has the objects, and the controllers have a second copy in the caches of their informers, whose
// objects share what they have in common.
package fleet
