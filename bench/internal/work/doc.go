// Package work has the workloads of the benchmark: a [Work] lists its [Case]s and runs
// one of them on one stack, which yields [Metric]s.
//
//	decoding.go  protobuf in memory, made into objects
//	sync.go      an initial list over HTTP
//	updating.go  new states over HTTP, as fast as they are taken
//	relist.go    410 Gone, and the list after it
//	fanout.go    updates from memory to handlers
//	stuck.go     updates while a handler does not return
//	churn.go     objects that come and go while a handler does not return
//	reads.go     gets and lists, alone and beside a writer
//	idle.go      many informers with nothing to do
//
// # What every workload does
//
//  1. It sets up an informer of the stack that it is given and waits for its sync.
//  2. It works, and measures around the work alone.
//  3. It checks that the stack did what it was to do: all objects there, every handler
//     told as often as it should have been. A workload that finds otherwise has no
//     metrics, but an error.
//
// # Concurrency properties
//
// Metrics are those of the process: one workload at a time.
//
// # Memory
//
// Objects, as package objects says; a workload lets go of them when it returns.
package work
