// Package objects makes the objects that the benchmarks work on: [Pod], [Deployment],
// [ConfigMap], [Widget] and those of [Database] are the objects of a number, as clusters have
// them, and [Kind] names their kinds.
//
//	number ──▶ workload = number / 40, replica = number % 40
//	              │                       │
//	              ▼                       ▼
//	   labels, spec, owner:        name, UID, IP, container ids, times, the
//	   one per workload            name of the token volume: one per object
//
// 20,000 pods are 500 workloads of 40 replicas; more pods are more workloads. A pod has
// two containers with probes, environment and resources, managed fields of two managers,
// and about 5 KB in protobuf.
//
// # Repeatable
//
// An object depends on the seed and its number alone: two processes that make the same
// one make it equal, byte for byte.
//
// # Concurrency properties
//
// Functions have no state and may be called from any goroutine.
//
// # Memory
//
// Every call returns an object of its own, which shares strings with the template of its kind.
package objects
